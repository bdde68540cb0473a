#include <gtest/gtest.h>

#include <stdexcept>

#include "brigade/base/error.h"
#include "data/files.h"
#include "data/safetensors_format.h"
#include "support/case_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace safetensors_writer_test {

using Metadata = std::map<std::string, std::string>;

// Every tensor's bytes are zero.
Bytes write(const std::vector<SafeTensorsEntry>& entries, const Metadata& metadata = {}) {
  Bytes zeros;
  Bytes file;
  write_entries(
      entries, metadata,
      [&](const SafeTensorsEntry& entry) -> std::span<const std::byte> {
        zeros.resize(entry.end - entry.begin);
        return zeros;
      },
      [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  return file;
}

// Without the spaces that make the data begin at a multiple of 8.
std::string header_of(const Bytes& file) {
  const auto size = std::to_integer<std::size_t>(file[0]) | std::to_integer<std::size_t>(file[1]) << 8;
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(file[i], std::byte{0});
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(file.at(8 + i));
  EXPECT_EQ(text.size() % 8, 0u);
  const std::size_t padding = text.size() - text.find_last_not_of(' ') - 1;
  EXPECT_LT(padding, 8u);
  return text.substr(0, text.size() - padding);
}

void expect_unwritable(const SafeTensorsEntry& entry, std::initializer_list<std::string> parts) {
  bool written = false;
  expect_error<InvalidArgument>(
      [&] {
        write_entries(
            {entry}, {}, [](const SafeTensorsEntry&) { return std::span<const std::byte>(); },
            [&](std::span<const std::byte>) { written = true; });
      },
      parts);
  EXPECT_FALSE(written);
}

TEST(SafeTensorsWriter, OrdersBySizeThenDtypeThenName) {
  const Bytes file = write({{.name = "b", .dtype = comm::DType::kUint8, .sizes = {3}},
                            {.name = "z", .dtype = comm::DType::kFloat32, .sizes = {}},
                            {.name = "a", .dtype = comm::DType::kUint8, .sizes = {0, 2}},
                            {.name = "y", .dtype = comm::DType::kFloat64, .sizes = {1, 1}},
                            {.name = "B", .dtype = comm::DType::kInt64, .sizes = {1}}});
  EXPECT_EQ(header_of(file), R"({"B":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                             R"("y":{"dtype":"F64","shape":[1,1],"data_offsets":[8,16]},)"
                             R"("z":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
                             R"("a":{"dtype":"U8","shape":[0,2],"data_offsets":[20,20]},)"
                             R"("b":{"dtype":"U8","shape":[3],"data_offsets":[20,23]}})");
}

TEST(SafeTensorsWriter, WritesMetadataInFrontByKeyAndEscaped) {
  EXPECT_EQ(header_of(write({}, {{"z", "\"\n\\"}, {"a", "\xC3\xBC"}})),
            "{\"__metadata__\":{\"a\":\"\xC3\xBC\",\"z\":\"\\\"\\n\\\\\"}}");
  EXPECT_EQ(header_of(write({})), "{}");
}

// Read and written again, a file of the reference's is what it was, byte for byte.
TEST(SafeTensorsWriter, GivesTheBytesOfTheReference) {
  for (const std::string name : {"every_dtype", "edges"}) {
    const Bytes original = read_file(cases::own_path("safetensors-python/" + name + ".safetensors"));
    ASSERT_FALSE(original.empty());
    MemorySource source(name, original);
    const SafeTensorsHeader header = read_safetensors_header(source, {.header_bytes = 10000, .data_bytes = 10000});
    std::map<std::string, Bytes> data;
    read_safetensors_data(source, header, [&](const SafeTensorsEntry& e) -> std::span<std::byte> {
      return data[e.name] = Bytes(e.end - e.begin);
    });
    const std::vector<SafeTensorsEntry> reversed(header.entries.rbegin(), header.entries.rend());
    Bytes again;
    write_entries(
        reversed, header.metadata,
        [&](const SafeTensorsEntry& e) -> std::span<const std::byte> { return data.at(e.name); },
        [&](std::span<const std::byte> bytes) { again.insert(again.end(), bytes.begin(), bytes.end()); });
    EXPECT_EQ(again, original) << name;
  }
}

TEST(SafeTensorsWriter, AsksForEachTensorRightBeforeItIsWritten) {
  std::string order;
  write_entries(
      {{.name = "b", .sizes = {1}}, {.name = "a", .sizes = {2}}}, {},
      [&](const SafeTensorsEntry& e) {
        order += e.name;
        return std::as_bytes(std::span("xy", e.end - e.begin));
      },
      [&](std::span<const std::byte> bytes) {
        order += order.empty() ? "header " : std::to_string(bytes.size()) + " ";
      });
  EXPECT_EQ(order, "header a2 b1 ");
}

TEST(SafeTensorsWriter, PassesOnWhatTheSinkThrows) {
  expect_error<std::out_of_range>(
      [] {
        write_entries({}, {}, {}, [](std::span<const std::byte>) { throw std::out_of_range("the disk is full"); });
      },
      {"the disk is full"});
}

TEST(SafeTensorsWriter, RefusesWhatTheReaderWouldRefuse) {
  const auto named = [](const std::string& name) { return SafeTensorsEntry{.name = name, .sizes = {1}}; };
  expect_unwritable(named(""), {"tensor \"\" cannot be written: its name is empty"});
  expect_unwritable(named("__metadata__"), {"its name is kept for the metadata"});
  expect_unwritable(named("a\x1b"), {"tensor \"a\\x1b\"", "control character"});
  expect_unwritable(named("a\xff"), {"\"a\\xff\" is no UTF-8"});
  expect_unwritable({.name = "a", .dtype = comm::DType::kComplex64, .sizes = {1}}, {"no complex64", "view_as_real"});
  expect_unwritable({.name = "a", .sizes = std::vector<std::int64_t>(65, 1)}, {"has 65 dimensions", "64"});
  expect_unwritable({.name = "a", .sizes = {std::int64_t{1} << 62, 4}},
                    {"shape [4611686018427387904, 4]", "too large"});
  expect_error<InvalidArgument>([] { write({}, {{"k", "\xff"}}); }, {"\"\\xff\" is no UTF-8"});
  expect_error<InvalidArgument>([] { write({}, {{"\xff", ""}}); }, {"no UTF-8"});
  Metadata many;
  for (std::size_t i = 0; i <= kSafeTensorsMaxMetadata; ++i) many[std::to_string(i)] = "";
  expect_error<InvalidArgument>([&] { write({}, many); }, {"65537 entries of metadata", "65536"});
  expect_error<InvalidArgument>(
      [] {
        write({}, {{"k", std::string(100'000'000, 'x')}});
      },
      {"header would take 10000", "100000000"});
}

TEST(SafeTensorsWriter, RefusesBoolsThatAreNeitherZeroNorOne) {
  expect_error<InvalidArgument>(
      [] {
        write_entries(
            {{.name = "mask", .dtype = comm::DType::kBool, .sizes = {2}}}, {},
            [](const SafeTensorsEntry&) { return std::as_bytes(std::span("\1\2", 2)); },
            [](std::span<const std::byte>) {});
      },
      {"tensor \"mask\"", "neither 0 nor 1"});
}

}  // namespace safetensors_writer_test
}  // namespace brigade::data
