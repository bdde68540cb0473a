// The recorded safetensors files, each as the table beside them says, and the fuzz target on all of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "brigade/base/error.h"
#include "data/replay.h"
#include "data/safetensors_format.h"
#include "support/case_files.h"

extern "C" int fuzz_safetensors(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace safetensors_cases_test {

constexpr SafeTensorsLimits kLimits = {.header_bytes = kSafeTensorsMaxHeader, .data_bytes = 1 << 30};

// Lines of three columns that tabs separate: the file, what the reference reader does, what ours does.
std::map<std::string, std::string> expected_by_file(const std::filesystem::path& folder) {
  std::map<std::string, std::string> expected;
  std::ifstream table(folder / "expected.tsv");
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream columns(line);
    std::string file;
    std::string reference;
    columns >> file >> reference >> expected[file];
  }
  return expected;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    FileSource source(path);
    const SafeTensorsHeader header = read_safetensors_header(source, kLimits);
    Bytes data;
    read_safetensors_data(source, header, [&data](const SafeTensorsEntry& entry) -> std::span<std::byte> {
      data.resize(entry.end - entry.begin);
      return data;
    });
    return {};
  } catch (const DataError& error) {
    return error.what();
  }
}

void check_folder(const std::filesystem::path& folder) {
  const auto expected = expected_by_file(folder);
  ASSERT_FALSE(expected.empty()) << folder;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "expected.tsv") continue;
    SCOPED_TRACE(name);
    ASSERT_TRUE(expected.contains(name)) << "the table does not have it";
    ++files;
    const std::string error = error_of(entry.path());
    if (expected.at(name) == "accept") {
      EXPECT_EQ(error, "");
    } else {
      ASSERT_EQ(expected.at(name), "reject");
      EXPECT_TRUE(error.starts_with(entry.path().string() + ": ")) << "error: " << error;
    }
  }
  EXPECT_EQ(files, expected.size());
}

TEST(SafeTensorsCases, AreReadOrRefusedAsTheirTableSays) {
  check_folder(cases::path_of("safetensors"));
  check_folder(cases::own_path("safetensors"));
}

TEST(SafeTensorsCases, FilesOfTheReferenceAreReadUnlessTorchLacksTheirDtype) {
  for (const auto& entry : std::filesystem::directory_iterator(cases::own_path("safetensors-python"))) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string error = error_of(entry.path());
    if (entry.path().filename() == "unsigned.safetensors") {
      EXPECT_NE(error.find(R"(tensor "counts" has the dtype "U16", which is not read here)"), std::string::npos)
          << error;
    } else {
      EXPECT_EQ(error, "");
    }
  }
}

TEST(SafeTensorsCases, HoldTheirTruncationsAndTheirByteChangesForTheFuzzTarget) {
  replay_corpus(fuzz_safetensors, cases::own_path("safetensors"));
  replay_corpus(fuzz_safetensors, cases::own_path("safetensors-python"));
}

}  // namespace safetensors_cases_test
}  // namespace brigade::data
