// The fuzzer's corpus: what each file gives, and what the fuzzer checks, on every truncation and every change of one
// byte as well.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/idx_parser.h"
#include "data/replay.h"

extern "C" int fuzz_idx(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace idx_replay_test {

TEST(IdxReplay, HoldsForTheCorpusItsTruncationsAndItsByteChanges) {
  replay_corpus(fuzz_idx, BRIGADE_FUZZ_CORPUS "/idx");
}

// Part of the message that a broken file of the corpus gives; nothing for a good one.
const std::map<std::string, std::string> kExpected = {
    {"eight_dimensions", ""},
    {"images", ""},
    {"images.gz", ""},
    {"labels", ""},
    {"two_members.gz", ""},
    {"zeros.gz", ""},
    {"bad_appended.gz", "followed by other bytes"},
    {"bad_checksum.gz", "damaged or followed by other bytes (incorrect data check)"},
    {"bad_deflate.gz", "the gzip stream is damaged"},
    {"bad_empty", "ends within the first four bytes: 0 of 4 bytes are there"},
    {"bad_header.gz", "the gzip stream is cut short"},
    {"bad_huge_dimension", "announces 4294967295 bytes, above the limit of 1048576"},
    {"bad_magic", "starts with the bytes 89 50 4e 47"},
    {"bad_nine_dimensions", "has 9 dimensions, where 1 to 8 can be read"},
    {"bad_no_dimension", "has 0 dimensions, where 1 to 8 can be read"},
    {"bad_overflowing_dimensions",
     "announces 2147483648 x 2147483648 x 2147483648 x 2147483648 bytes, above the limit"},
    {"bad_trailing_byte", "goes on after its 12 elements (3 x 4)"},
    {"bad_trailing_byte.gz", "goes on after its 12 elements (3 x 4)"},
    {"bad_truncated.gz", "the gzip stream is cut short"},
    {"bad_truncated_dimensions", "ends within its dimensions: 5 of 8 bytes are there"},
    {"bad_truncated_elements", "announces 3 x 4 = 12 bytes, but at most 11 can follow"},
    {"bad_truncated_elements.gz", "ends after 11 of 12 elements"},
    {"bad_truncated_magic", "ends within the first four bytes: 3 of 4 bytes are there"},
    {"bad_type", "holds 32-bit floats (type 0x0d)"},
    {"bad_zero_dimension", "holds nothing: its dimensions are 3 x 0 x 4"},
};

std::string error_of(const std::filesystem::path& path) {
  try {
    parse_idx(*open_bytes(path), 1 << 20);
    return {};
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(IdxReplay, GivesTheErrorThatEachFileOfTheCorpusStandsFor) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BRIGADE_FUZZ_CORPUS "/idx")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto expected = kExpected.find(name);
    ASSERT_NE(expected, kExpected.end()) << "say here what it gives";
    ++files;
    const std::string error = error_of(entry.path());
    if (expected->second.empty()) {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_EQ(error.rfind(entry.path().string() + ": ", 0), 0U) << error;
      EXPECT_NE(error.find(expected->second), std::string::npos) << error;
    }
  }
  EXPECT_EQ(files, kExpected.size());
}

}  // namespace idx_replay_test
}  // namespace brigade::data
