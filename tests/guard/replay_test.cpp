// The fuzzer's corpus: what each file gives, and what the fuzzer checks, on every truncation and every change of one byte as
// well.
#include "data/replay.h"

#include <gtest/gtest.h>

#include <map>

#include "brigade/base/error.h"
#include "guard/manifest.h"
#include "guard/state.h"
#include "guard/support.h"

extern "C" int fuzz_checkpoint(const std::uint8_t* data, std::size_t size);

namespace brigade::guard {
namespace replay_test {

TEST(CheckpointReplay, HoldsForTheCorpusItsTruncationsAndItsByteChanges) {
  data::replay_corpus(fuzz_checkpoint, BRIGADE_FUZZ_CORPUS "/checkpoint");
}

template <class F>
std::string error_of(F f) {
  try {
    f();
    return {};
  } catch (const DataError& error) {
    return error.what();
  }
}

struct Expected {
  std::string as_manifest, as_state;
};

TEST(CheckpointReplay, GivesTheErrorThatEachFileOfTheCorpusStandsFor) {
  const std::map<std::string, Expected> expected = {
      {"manifest", {"", ""}},
      {"bad_manifest_digest", {"was changed after it was written", ""}},
      {"state", {"is no manifest", ""}},
      {"bad_state_key_twice", {"is no manifest", "has a key twice"}},
      {"bad_state_depth", {"is no manifest", "more than 32 levels"}},
  };
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BRIGADE_FUZZ_CORPUS "/checkpoint")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(expected.contains(name)) << "say here what it gives";
    ++files;
    const std::string text = testing::text_of(entry.path());
    const auto compare = [](const std::string& error, const std::string& part) {
      EXPECT_EQ(error.empty(), part.empty()) << error;
      EXPECT_NE(error.find(part), std::string::npos) << error;
    };
    compare(error_of([&] { parse_manifest("m", text); }), expected.at(name).as_manifest);
    compare(error_of([&] { parse_state("s", text); }), expected.at(name).as_state);
  }
  EXPECT_EQ(files, expected.size());
}

}  // namespace replay_test
}  // namespace brigade::guard
