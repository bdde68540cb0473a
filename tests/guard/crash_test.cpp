// The power fails before any call: whatever part of what was not flushed is on the disk then, the newest checkpoint that can be
// read is the new one or the one before, bit for bit.
#include <gmock/gmock.h>

#include "guard/disk_model.h"
#include "guard/support.h"

namespace brigade::guard {
namespace crash_test {

using namespace testing;

// Every disk that can be left behind while `work` runs in `folder`.
std::set<RecordingCalls::State> crash_states(const std::filesystem::path& folder,
                                             const std::function<void(SystemCalls&)>& work) {
  RecordingCalls calls(folder);
  std::set<RecordingCalls::State> states;
  calls.before_change = [&] { calls.add_crash_states(states); };
  work(calls);
  calls.add_crash_states(states);
  return states;
}

// Reads each of these disks, and goes on from it as a later run would.
void expect_one_of(const std::set<RecordingCalls::State>& states, const std::vector<Loaded>& allowed) {
  const TemporaryFolder copy;
  const auto folder = copy.path() / "disk";
  std::set<std::size_t> seen;
  for (const RecordingCalls::State& state : states) {
    put_state(state, folder);
    std::optional<Loaded> found;
    (void)logged_by([&] { found = newest_in(folder); });
    ASSERT_TRUE(found.has_value());
    const auto which = std::find(allowed.begin(), allowed.end(), *found);
    ASSERT_NE(which, allowed.end()) << "found step " << found->step << ", " << found->state;
    seen.insert(static_cast<std::size_t>(which - allowed.begin()));
    (void)logged_by([&] { write(folder, {9}, 2); });
    ASSERT_EQ(newest_in(folder), example(9));
    for (const std::string& name : names_in(folder)) ASSERT_FALSE(name.starts_with(".tmp")) << name;
  }
  EXPECT_EQ(seen.size(), allowed.size()) << "some were never found";
}

TEST(Crash, WhileACheckpointIsWrittenLeavesItOrTheOneBefore) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  const auto states = crash_states(folder.path(), [&](SystemCalls& calls) {
    Store(calls, {.folder = folder.path(), .keep_last = 2}).write(content_of(example(3)));
  });
  EXPECT_GT(states.size(), 100u);
  expect_one_of(states, {example(2), example(3)});
}

TEST(Crash, WithOnlyOneKeptNeverLeavesNone) {
  const TemporaryFolder folder;
  write(folder.path(), {2});
  const auto states = crash_states(folder.path(), [&](SystemCalls& calls) {
    Store(calls, {.folder = folder.path(), .keep_last = 1}).write(content_of(example(3)));
  });
  expect_one_of(states, {example(2), example(3)});
}

TEST(Crash, WhileACheckpointIsReplacedLeavesTheNewOneOrTheOld) {
  const TemporaryFolder folder;
  write(folder.path(), {2});
  const auto states = crash_states(folder.path(), [&](SystemCalls& calls) {
    Store(calls, {.folder = folder.path(), .keep_last = 1}).write(content_of(example(2, 1)));
  });
  expect_one_of(states, {example(2), example(2, 1)});
}

TEST(Crash, AfterTheWriteLeavesTheNewOne) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  RecordingCalls calls(folder.path());
  Store(calls, {.folder = folder.path(), .keep_last = 2}).write(content_of(example(3)));
  std::set<RecordingCalls::State> states;
  calls.add_crash_states(states);
  expect_one_of(states, {example(3)});
}

// The second of two runs begins on what the first left.
TEST(Crash, WhileLeftoversAreRemovedLeavesTheNewest) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  std::filesystem::create_directory(folder.path() / ".tmp-step-00000003");
  for (const std::string name : {"model.safetensors", "manifest.json"})
    put_text(folder.path() / ".tmp-step-00000003" / name, "half");
  const auto states =
      crash_states(folder.path(), [&](SystemCalls& calls) { Store(calls, {.folder = folder.path(), .keep_last = 2}); });
  expect_one_of(states, {example(2)});
}

}  // namespace crash_test
}  // namespace brigade::guard
