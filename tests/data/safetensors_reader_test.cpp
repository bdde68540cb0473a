#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "brigade/base/error.h"
#include "data/safetensors_files.h"
#include "data/safetensors_format.h"
#include "support/errors.h"

namespace brigade::data {
namespace safetensors_reader_test {

constexpr SafeTensorsLimits kLimits = {.header_bytes = kSafeTensorsMaxHeader, .data_bytes = 1 << 30};

struct Content {
  SafeTensorsHeader header;
  std::map<std::string, Bytes> tensors;
};

Content read(ByteSource& source, SafeTensorsLimits limits = kLimits) {
  Content content{.header = read_safetensors_header(source, limits), .tensors = {}};
  read_safetensors_data(source, content.header, [&](const SafeTensorsEntry& entry) -> std::span<std::byte> {
    return content.tensors[entry.name] = Bytes(entry.end - entry.begin);
  });
  return content;
}

Content read(const Bytes& file, SafeTensorsLimits limits = kLimits) {
  MemorySource source("some.safetensors", file);
  return read(source, limits);
}

void expect_refused(const Bytes& file, std::initializer_list<std::string> parts) {
  expect_error<DataError>([&] { read(file); }, parts);
}

// A file whose one tensor "a" has these fields, before four floats.
void expect_fields_refused(std::string_view fields, std::initializer_list<std::string> parts) {
  expect_refused(safetensors_file(described(fields), 16), parts);
}

void expect_header_refused(std::string_view json, std::initializer_list<std::string> parts) {
  expect_refused(safetensors_file(json, 16), parts);
}

TEST(SafeTensorsReader, ReadsNamesShapesBytesAndMetadata) {
  const Content content =
      read(safetensors_file(R"({"b":{"shape":[3],"data_offsets":[16,19],"dtype":"U8"},"__metadata__":{"k":"v","":""},)"
                            R"("\u0061":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
                            19));
  ASSERT_EQ(content.header.entries.size(), 2u);
  EXPECT_EQ(content.header.entries[0].name, "a");
  EXPECT_EQ(content.header.entries[0].dtype, comm::DType::kFloat32);
  EXPECT_EQ(content.header.entries[0].sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(content.header.entries[1].name, "b");
  EXPECT_EQ(content.header.entries[1].dtype, comm::DType::kUint8);
  EXPECT_EQ(content.tensors.at("b"), (Bytes{std::byte{16}, std::byte{17}, std::byte{18}}));
  EXPECT_EQ(content.header.metadata, (std::map<std::string, std::string>{{"", ""}, {"k", "v"}}));
}

TEST(SafeTensorsReader, ReadsTheDtypesThatTorchHas) {
  const std::map<std::string, std::pair<comm::DType, std::size_t>> dtypes = {
      {"BOOL", {comm::DType::kBool, 1}},   {"U8", {comm::DType::kUint8, 1}},      {"I8", {comm::DType::kInt8, 1}},
      {"I16", {comm::DType::kInt16, 2}},   {"I32", {comm::DType::kInt32, 4}},     {"I64", {comm::DType::kInt64, 8}},
      {"F16", {comm::DType::kFloat16, 2}}, {"BF16", {comm::DType::kBFloat16, 2}}, {"F32", {comm::DType::kFloat32, 4}},
      {"F64", {comm::DType::kFloat64, 8}},
  };
  for (const auto& [name, expected] : dtypes) {
    const auto [dtype, size] = expected;
    const std::string fields =
        R"("dtype":")" + name + R"(","shape":[1],"data_offsets":[0,)" + std::to_string(size) + "]";
    EXPECT_EQ(read(safetensors_file(described(fields), size)).header.entries.at(0).dtype, dtype) << name;
  }
  for (const std::string name : {"U16", "U32", "U64", "C64", "F8_E4M3", "F8_E5M2", "F4", "f32", ""}) {
    expect_fields_refused(R"("dtype":")" + name + R"(","shape":[2],"data_offsets":[0,16])",
                          {"some.safetensors: tensor \"a\" has the dtype \"" + name + "\", which is not read here",
                           "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 and F64"});
  }
}

TEST(SafeTensorsReader, RefusesFilesTooShortForTheirHeader) {
  expect_refused({}, {"ends after 0 bytes", "takes 8"});
  expect_refused(Bytes(7), {"ends after 7 bytes"});
  Bytes file = safetensors_file(described(kFourFloats), 0);
  file.pop_back();
  expect_refused(file, {"a header of 57 bytes, but 56 follow", "fetch it again"});
}

TEST(SafeTensorsReader, RefusesHeadersAboveItsLimit) {
  const Bytes file = safetensors_file(described(kFourFloats), 16);
  EXPECT_EQ(read(file, {.header_bytes = 57, .data_bytes = 16}).tensors.size(), 1u);
  expect_error<DataError>([&] { read(file, {.header_bytes = 56, .data_bytes = 16}); },
                          {"header of 57 bytes", "limit of 56", "max_header_bytes"});
  expect_error<DataError>([&] { read(file, {.header_bytes = 57, .data_bytes = 15}); },
                          {"16 bytes of data", "limit of 15", "max_bytes"});
}

TEST(SafeTensorsReader, RefusesHeadersThatAreNoJsonObject) {
  for (const std::string_view json : std::initializer_list<std::string_view>{
           "", "[]", " {}", "{}x", "\xEF\xBB\xBF{}", "{}\n", "3", "{} {", std::string_view("{}\0{}", 5)}) {
    expect_refused(safetensors_file(json, 0), {"its header is no JSON object with nothing but spaces behind it"});
  }
  for (const std::string_view json : {"{}}", "{\"a\":}", "{}{}", "{a:{}}", "{\"a\xFF\":{}}", "{\"\\ud800\":{}}", "{,}",
                                      "{\"__metadata__\":{},}", "{/**/}", "{\"__metadata__\":{\"a\":\"\n\"}}"}) {
    expect_refused(safetensors_file(json, 0), {"its header is no JSON in UTF-8 from byte"});
  }
  EXPECT_TRUE(read(safetensors_file("{}", 0)).tensors.empty());
  EXPECT_TRUE(read(safetensors_file("{ }   ", 0)).tensors.empty());
}

TEST(SafeTensorsReader, RefusesValuesThatDoNotBelong) {
  const std::string where = "its header has for tensor \"a\" ";
  expect_header_refused(R"({"a":3})", {where + "a number, where an object belongs"});
  expect_header_refused(R"({"a":null})", {where + "null, where an object"});
  expect_header_refused(R"({"a":true})", {where + "true or false, where"});
  expect_header_refused(R"({"a":[{"dtype":"F32"}]})", {where + "an array, where an object"});
  expect_fields_refused(R"("dtype":32)", {where + "a number as its \"dtype\", where a string belongs"});
  expect_fields_refused(R"("dtype":["F32"])", {where + "an array as its \"dtype\""});
  expect_fields_refused(R"("dtype":{"name":"F32"})", {where + "an object as its \"dtype\""});
  expect_fields_refused(R"("shape":"2")", {where + "a string as its \"shape\", where an array belongs"});
  expect_fields_refused(R"("shape":[[2]])", {where + "an array in its \"shape\", where whole numbers"});
  expect_fields_refused(R"("shape":[{}])", {where + "an object in its \"shape\""});
  expect_fields_refused(R"("shape":["2"])", {where + "a string in its \"shape\""});
  expect_fields_refused(R"("shape":[2.0])", {where + "a fraction or a number too large in its \"shape\""});
  expect_fields_refused(R"("shape":[2e0])", {where + "a fraction or a number too large in its \"shape\""});
  expect_fields_refused(R"("shape":[18446744073709551616])", {where + "a fraction or a number too large"});
  expect_fields_refused(R"("shape":[-1])", {where + "a negative number in its \"shape\""});
  expect_fields_refused(R"("data_offsets":[-0,16])", {where + "a negative number in its \"data_offsets\""});
  expect_fields_refused(R"("data_offsets":[false,16])", {where + "true or false in its \"data_offsets\""});
  expect_header_refused(R"({"__metadata__":null})", {"for \"__metadata__\" null, where an object"});
  expect_header_refused(R"({"__metadata__":{"k":1}})", {"a number as its \"k\", where a string belongs"});
  expect_header_refused(R"({"__metadata__":{"k":{}}})", {"an object as its \"k\""});
  expect_header_refused(R"({"__metadata__":{"k":[]}})", {"an array as its \"k\""});
}

TEST(SafeTensorsReader, RefusesFieldsThatAreMissingUnknownOrThereTwice) {
  expect_fields_refused(R"("shape":[2,2],"data_offsets":[0,16])", {"for tensor \"a\" no \"dtype\""});
  expect_fields_refused(R"("dtype":"F32","data_offsets":[0,16])", {"for tensor \"a\" no \"shape\""});
  expect_fields_refused(R"("dtype":"F32","shape":[2,2])", {"for tensor \"a\" no \"data_offsets\""});
  expect_fields_refused(std::string(kFourFloats) + R"(,"stride":[2,1])",
                        {"its \"stride\", which is no field of this format: dtype, shape, data_offsets"});
  expect_fields_refused(std::string(kFourFloats) + R"(,"shape":[2,2])", {"its \"shape\" twice"});
}

TEST(SafeTensorsReader, RefusesNamesThatOccurTwiceHoweverTheyAreSpelt) {
  const std::string entry = "{" + std::string(kFourFloats) + "}";
  expect_header_refused(R"({"a":)" + entry + R"(,"\u0061":)" + entry + "}", {"its header has tensor \"a\" twice"});
  expect_header_refused(R"({"__metadata__":{},"a":)" + entry + R"(,"__metadata__":{}})",
                        {"for \"__metadata__\" two objects"});
  expect_header_refused(R"({"__metadata__":{"k":"1","\u006b":"1"}})", {"for \"__metadata__\" \"k\" twice"});
}

TEST(SafeTensorsReader, RefusesNamesThatATerminalWouldObeyAndShowsThemHarmless) {
  const auto named = [](const std::string& name) { return "{\"" + name + "\":{" + std::string(kFourFloats) + "}}"; };
  expect_header_refused(named(""), {"has a tensor \"\", whose name is empty"});
  expect_header_refused(named("\\u001b[2J"), {"has a tensor \"\\x1b[2J\", whose name has a control character"});
  expect_header_refused(named("a\\u0000"), {"\"a\\x00\""});
  expect_header_refused(named("\x7f"), {"\"\\x7f\""});
  expect_header_refused(named("\xC2\x9b"), {"\"\\xc2\\x9b\""});
  EXPECT_EQ(read(safetensors_file(named("\xC2\xa0\xE9\x87\x8D"), 16)).tensors.size(), 1u);
}

TEST(SafeTensorsReader, RefusesShapesThatCannotBe) {
  expect_fields_refused(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,16])",
                        {"the dimension 9223372036854775808, above 2^63 - 1"});
  expect_fields_refused(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])",
                        {"the shape [4294967296, 4294967296], which is too large"});
  expect_fields_refused(R"("dtype":"F32","shape":[2305843009213693952],"data_offsets":[0,0])", {"which is too large"});
  // Nothing is in it, but its strides would overflow.
  expect_fields_refused(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])",
                        {"which is too large"});
  std::string ones = "1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  const auto shaped = [](const std::string& sizes) {
    return R"("dtype":"U8","shape":[)" + sizes + R"(],"data_offsets":[0,1])";
  };
  EXPECT_EQ(read(safetensors_file(described(shaped(ones)), 1)).header.entries[0].sizes.size(), 64u);
  expect_fields_refused(shaped(ones + ",1"), {"more than 64 dimensions"});
}

TEST(SafeTensorsReader, RefusesOffsetsThatDoNotFitTheShape) {
  const auto offsets = [](const std::string& numbers) {
    return R"("dtype":"F32","shape":[2,2],"data_offsets":[)" + numbers + "]";
  };
  expect_fields_refused(offsets("0,15"), {"the data_offsets [0, 15], where [2, 2] of float32 takes 16 bytes"});
  expect_fields_refused(offsets("16,0"), {"the data_offsets [16, 0]"});
  for (const std::string numbers : {"", "0", "0,8,16"}) {
    expect_fields_refused(offsets(numbers), {"other than two \"data_offsets\""});
  }
}

TEST(SafeTensorsReader, RefusesDataThatIsNotTiled) {
  const auto two = [](const std::string& a, const std::string& b) {
    const auto entry = [](const std::string& name, const std::string& offsets) {
      return "\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" + offsets + "]}";
    };
    return "{" + entry("a", a) + "," + entry("b", b) + "}";
  };
  EXPECT_EQ(read(safetensors_file(two("4,8", "0,4"), 8)).header.entries[0].name, "b");
  expect_refused(safetensors_file(two("1,5", "5,9"), 9), {"the bytes of tensor \"a\" begin at 1", "end at 0"});
  expect_refused(safetensors_file(two("0,4", "5,9"), 9), {"the bytes of tensor \"b\" begin at 5", "end at 4"});
  expect_refused(safetensors_file(two("0,4", "3,7"), 7), {"\"b\" begin at 3", "end at 4"});
  expect_refused(safetensors_file(two("0,4", "0,4"), 8), {"\"b\" begin at 0", "end at 4"});
}

TEST(SafeTensorsReader, RefusesDataOfAnotherSizeThanDescribed) {
  const std::string json = described(kFourFloats);
  expect_refused(safetensors_file(json, 15), {"holds 15 bytes of data", "describes 16", "cut short"});
  expect_refused(safetensors_file(json, 17), {"holds 17 bytes of data", "describes 16", "appended"});
}

TEST(SafeTensorsReader, RefusesBoolsThatAreNeitherZeroNorOne) {
  // The bytes are 0, 1, 2.
  const Bytes file = safetensors_file(described(R"("dtype":"BOOL","shape":[3],"data_offsets":[0,3])"), 3);
  expect_refused(file, {"element 2 of the bools of tensor \"a\" is 2"});
}

TEST(SafeTensorsReader, RefusesMoreMetadataThanItsMemoryIsMeantFor) {
  const auto with_entries = [](std::size_t count) {
    std::string json = R"({"__metadata__":{"0":"")";
    for (std::size_t i = 1; i < count; ++i) json += ",\"" + std::to_string(i) + "\":\"\"";
    return safetensors_file(json + "}}", 0);
  };
  EXPECT_EQ(read(with_entries(65536)).header.metadata.size(), 65536u);
  expect_refused(with_entries(65537), {"for \"__metadata__\" more than 65536 entries"});
}

// A file that changes while it is read: it keeps its promise of a size, but not in what it delivers.
class ChangingSource final : public ByteSource {
 public:
  ChangingSource(std::span<const std::byte> bytes, std::uint64_t promised)
      : ByteSource("changing"), real_("changing", bytes), promised_(promised) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = real_.read(out);
    promised_ -= std::min<std::uint64_t>(promised_, out.size());
    return count;
  }
  std::uint64_t at_most() const override { return promised_; }

 private:
  MemorySource real_;
  std::uint64_t promised_;
};

TEST(SafeTensorsReader, RefusesAFileThatShrinksOrGrowsMeanwhile) {
  Bytes file = safetensors_file(described(kFourFloats), 17);
  const auto read_part = [&](std::size_t size) {
    ChangingSource source(std::span<const std::byte>(file).first(size), file.size() - 1);
    return read(source);
  };
  EXPECT_EQ(read_part(file.size() - 1).tensors.size(), 1u);
  expect_error<DataError>([&] { read_part(file.size()); }, {"changing: goes on after its data", "changed while"});
  expect_error<DataError>([&] { read_part(file.size() - 2); }, {"changing: ends within tensor \"a\""});
  expect_error<DataError>([&] { read_part(20); }, {"changing: ends within its header"});
}

TEST(SafeTensorsReader, AsksForMemoryOnlyWhenTheWholeHeaderFits) {
  // The first tensor is sound and large; the second is not.
  const Bytes file = safetensors_file(
      R"({"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]},"b":{"dtype":"U8"}})", 16);
  MemorySource source("input", file);
  std::size_t asked = 0;
  expect_error<DataError>(
      [&] {
        const auto header = read_safetensors_header(source, kLimits);
        read_safetensors_data(source, header, [&](const SafeTensorsEntry&) {
          ++asked;
          return std::span<std::byte>();
        });
      },
      {"for tensor \"b\" no \"shape\""});
  EXPECT_EQ(asked, 0u);
}

TEST(SafeTensorsReader, RefusesDeepNestingAtOnce) {
  const std::string nested(std::size_t{4} << 20, '[');
  expect_fields_refused(std::string(kFourFloats) + R"(,"x":)" + nested + "1", {"\"x\", which is no field"});
  expect_header_refused(R"({"a":{"shape":)" + nested + "}}", {"an array in its \"shape\""});
  expect_header_refused(R"({"__metadata__":{"x":)" + nested + "}}", {"an array as its \"x\""});
}

}  // namespace safetensors_reader_test
}  // namespace brigade::data
