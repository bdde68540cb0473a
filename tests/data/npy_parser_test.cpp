#include "data/npy_parser.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "brigade/base/error.h"
#include "data/npy_files.h"
#include "data/replay.h"
#include "support/case_files.h"
#include "support/errors.h"

extern "C" int fuzz_npy(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace npy_parser_test {

constexpr std::uint64_t kLimit = 1 << 30;

struct Array {
  NpyHeader header;
  Bytes bytes;
};

Array read(const Bytes& file, std::uint64_t max_bytes = kLimit) {
  MemorySource source("some.npy", file);
  Array array{.header = read_npy_header(source, max_bytes), .bytes = {}};
  array.bytes.resize(array.header.bytes);
  read_npy_data(source, array.header, array.bytes);
  return array;
}

void expect_refused(const Bytes& file, std::initializer_list<std::string> parts) {
  expect_error<DataError>([&] { read(file); }, parts);
}

void expect_header_refused(std::string_view header, std::initializer_list<std::string> parts) {
  expect_refused(npy_file(header, 6), parts);
}

TEST(NpyParser, ReadsShapesOrdersAndBytes) {
  const Array array = read(npy_file(npy_header("<i2", "(3, 1)"), 6));
  EXPECT_EQ(array.header.dtype, comm::DType::kInt16);
  EXPECT_EQ(array.header.sizes, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(array.header.axis_order, AxisOrder::kLastFastest);
  EXPECT_EQ(array.bytes, (Bytes{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}}));
  const Array fortran = read(npy_file(npy_header(">i2", "(3,)", "True"), 6, 2));
  EXPECT_EQ(fortran.header.axis_order, AxisOrder::kFirstFastest);
  EXPECT_EQ(fortran.header.sizes, std::vector<std::int64_t>{3});
  EXPECT_EQ(fortran.bytes, (Bytes{std::byte{1}, std::byte{0}, std::byte{3}, std::byte{2}, std::byte{5}, std::byte{4}}));
  EXPECT_TRUE(read(npy_file(npy_header("<f8", "()"), 8)).header.sizes.empty());
  EXPECT_EQ(read(npy_file(npy_header("<f8", "(0, 7)"), 0)).bytes.size(), 0u);
}

TEST(NpyParser, ReadsTheHeaderInAnyOrderAndSpacing) {
  EXPECT_EQ(read(npy_file("{\"shape\":(6,),'descr':\"|u1\" , 'fortran_order' : False}", 6)).bytes.size(), 6u);
  EXPECT_EQ(read(npy_file("{'shape': (2, 3,), 'descr': '|u1', 'fortran_order': False}", 6)).bytes.size(), 6u);
}

TEST(NpyParser, RefusesWhatNumpySavedOfOtherDtypes) {
  const std::map<std::string, std::string> expected = {
      {"refused_uint16", R"(holds unsigned integers (descr "<u2"), which are not read here)"},
      {"refused_complex64", R"(holds complex numbers (descr "<c8"))"},
      {"refused_text", R"(holds text (descr "<U2"))"},
      {"refused_dates", R"(holds dates or spans of time (descr "<M8[s]"))"},
      {"refused_records", "holds records of several fields"},
      {"refused_objects", "holds Python objects. They are not loaded, since that can run code"},
  };
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cases::own_path("npy"))) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".npy") continue;
    SCOPED_TRACE(name);
    const Bytes file = read_file(entry.path());
    if (expected.contains(name)) {
      ++refused;
      expect_refused(file, {"some.npy: " + expected.at(name)});
    } else {
      EXPECT_NO_THROW(read(file));
    }
  }
  EXPECT_EQ(refused, expected.size());
}

TEST(NpyParser, RefusesDtypesThatAreNone) {
  for (const std::string descr : {"", "<", "f4", "=f4", "<b1x", "|i4", "|f8", "<f16", "<i3", "<V2", "x"}) {
    expect_header_refused(npy_header(descr, "(6,)"), {"(descr \"" + descr + "\"), which are not read here", "astype"});
  }
}

TEST(NpyParser, RefusesWhatIsNoNpyFile) {
  expect_refused({}, {"does not begin with \\x93NUMPY", "numpy.save"});
  expect_refused(text_bytes("PK\3\4 an archive"), {"does not begin with", ".npz"});
  Bytes file = npy_file(npy_header("|u1", "(6,)"), 6);
  file[6] = std::byte{4};
  expect_refused(file, {"has the version 4.0 of its format"});
  file[6] = std::byte{1};
  file[7] = std::byte{1};
  expect_refused(file, {"has the version 1.1 of its format"});
}

TEST(NpyParser, RefusesEveryTruncation) {
  const Bytes file = npy_file(npy_header("|u1", "(6,)"), 6);
  for (std::size_t size = 0; size < file.size(); ++size) {
    expect_refused(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), {"some.npy: "});
  }
}

TEST(NpyParser, RefusesHeadersThatAreDamaged) {
  expect_header_refused("", {"its header has no '{' before \"\""});
  expect_header_refused("{'shape'", {"has no ':' before \"\""});
  expect_header_refused("{'shape: (6,)}", {"has a text without an end"});
  expect_header_refused("{'sh\\x61pe': (6,)}", {"a backslash"});
  expect_header_refused("{'order': 1}", {"the unknown key \"order\""});
  expect_header_refused("{'shape': (6,), 'shape': (6,)}", {"has \"shape\" twice"});
  expect_header_refused("{'shape': (6,) 'descr': '|u1'}", {"has no '}' before \"'descr'"});
  expect_header_refused("{'shape': 6}", {"has no '(' before \"6}\""});
  expect_header_refused("{'shape': (6)}", {"a shape that is no tuple"});
  expect_header_refused("{'shape': (6", {"neither a comma nor a bracket behind a dimension"});
  expect_header_refused("{'shape': (2 3)}", {"neither a comma nor a bracket"});
  expect_header_refused("{'shape': (,)}", {"no whole number from 0"});
  expect_header_refused("{'shape': (-1,)}", {"no whole number from 0"});
  expect_header_refused("{'shape': (9223372036854775808,)}", {"no whole number from 0 to 2^63 - 1"});
  expect_header_refused("{'shape': (2.0,)}", {"neither a comma"});
  expect_header_refused("{'fortran_order': 0}", {"neither True nor False, but \"0}\""});
  expect_header_refused("{'descr': 3}", {"has no ''' before \"3}\""});
  expect_header_refused("{}", {"lacks 'descr', 'fortran_order' or 'shape'"});
  expect_header_refused("{'descr': '|u1', 'shape': (6,)}", {"lacks"});
  expect_header_refused(npy_header("|u1", "(6,)") + "x", {"goes on behind its dictionary"});
  std::string many = "(1";
  for (int i = 1; i < 65; ++i) many += ",1";
  expect_header_refused(npy_header("|u1", many + ")"), {"more than 64 dimensions"});
}

TEST(NpyParser, RefusesHeadersAboveItsLimit) {
  expect_refused(npy_file(std::string(65537, ' '), 0, 2), {"a header of 65537 bytes, above the limit of 65536"});
}

TEST(NpyParser, RefusesElementsThatAreNotThere) {
  expect_refused(npy_file(npy_header("<i2", "(3,)"), 5), {"3 elements of int16, 6 bytes, but 5 follow", "cut short"});
  expect_refused(npy_file(npy_header("<i2", "(3,)"), 7), {"6 bytes, but 7 follow", "appended"});
  expect_refused(npy_file(npy_header("<i2", "(4294967296, 4294967296)"), 6),
                 {"4294967296 x 4294967296 elements of int16, above the limit of 1073741824 bytes", "max_bytes"});
  expect_refused(npy_file(npy_header("<i2", "(536870913,)"), 6), {"above the limit"});
  expect_refused(npy_file(npy_header("<i2", "(1000000,)"), 6), {"2000000 bytes, but 6 follow"});
}

TEST(NpyParser, RefusesBoolsThatAreNeitherZeroNorOne) {
  expect_refused(npy_file(npy_header("|b1", "(3,)"), 3), {"its bool number 2 is 2, neither 0 nor 1"});
}

TEST(NpyReplay, HoldsForRecordedFilesTheirTruncationsAndTheirByteChanges) {
  replay_corpus(fuzz_npy, cases::own_path("npy"));
  replay_corpus(fuzz_npy, BRIGADE_FUZZ_CORPUS "/npy");
}

}  // namespace npy_parser_test
}  // namespace brigade::data
