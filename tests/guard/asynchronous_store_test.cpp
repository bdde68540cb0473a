// Writing on a thread of its own: what is waited for, and where errors come out.
#include "guard/asynchronous_store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "brigade/base/error.h"
#include "guard/support.h"
#include "support/errors.h"

namespace brigade::guard {
namespace asynchronous_store_test {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A disk that is full while `full` is set.
class Disk final : public SystemCalls {
 public:
  std::atomic<bool> full = false;
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    if (!full) return SystemCalls::write(file, bytes, size);
    errno = ENOSPC;
    return -1;
  }
};

// Lets a producer wait until it is told to go on.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

Content held_back(const Loaded& loaded, Gate& gate) {
  Content content = content_of(loaded);
  content.model = [&gate, produce = content.model](const data::ByteSink& sink) {
    gate.wait();
    produce(sink);
  };
  return content;
}

TEST(AsynchronousStore, ReturnsBeforeTheCheckpointIsWritten) {
  const TemporaryFolder folder;
  AsynchronousStore store(system_calls(), {.folder = folder.path()});
  Gate gate;
  store.write(held_back(example(1), gate));
  EXPECT_EQ(newest_in(folder.path()), std::nullopt);
  gate.open();
  store.finish();
  EXPECT_EQ(newest_in(folder.path()), example(1));
}

TEST(AsynchronousStore, TheNextWriteWaitsForTheOneBefore) {
  const TemporaryFolder folder;
  AsynchronousStore store(system_calls(), {.folder = folder.path()});
  std::atomic<int> at_once = 0;
  for (std::int64_t step = 1; step <= 20; ++step) {
    Content content = content_of(example(step));
    content.optimizer = [&at_once, produce = content.optimizer](const data::ByteSink& sink) {
      EXPECT_EQ(++at_once, 1);
      produce(sink);
      --at_once;
    };
    store.write(std::move(content));
    if (step == 1) continue;
    const auto before = newest_in(folder.path());
    ASSERT_TRUE(before.has_value());
    EXPECT_GE(before->step, step - 1);
  }
  store.finish();
  EXPECT_EQ(newest_in(folder.path()), example(20));
}

TEST(AsynchronousStore, AFailureComesOutOfTheNextCallOnce) {
  const TemporaryFolder folder;
  Disk disk;
  AsynchronousStore store(disk, {.folder = folder.path()});
  store.write(content_of(example(1)));
  store.finish();
  disk.full = true;
  store.write(content_of(example(2)));
  expect_error<DataError>([&] { store.write(content_of(example(3))); },
                          {"the checkpoint of step 2 was not written", "No space left", folder.path().string()});
  EXPECT_EQ(newest_in(folder.path()), example(1));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre(".lock", "step-00000001"));
  store.finish();  // was said

  store.write(content_of(example(4)));
  expect_error<DataError>([&] { store.finish(); }, {"the checkpoint of step 4 was not written"});
  disk.full = false;
  store.write(content_of(example(5)));
  store.finish();
  EXPECT_EQ(newest_in(folder.path()), example(5));
  EXPECT_EQ(store.failures(), 2);
}

// The system sends a signal that would end the process.
TEST(AsynchronousStore, AFileAboveTheLimitOfTheProcessIsAnErrorLikeOthers) {
  const TemporaryFolder folder;
  AsynchronousStore store(system_calls(), {.folder = folder.path()});
  store.write(content_of(example(1)));
  store.finish();
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string problem;
  try {
    store.write(content_of(example(2)));
    store.finish();
  } catch (const DataError& error) {
    problem = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THAT(problem, AllOf(HasSubstr("the checkpoint of step 2 was not written"), HasSubstr("File too large")));
  EXPECT_EQ(newest_in(folder.path()), example(1));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre(".lock", "step-00000001"));
}

TEST(AsynchronousStore, ARunThatGoesOnIsToldInTheLog) {
  const TemporaryFolder folder;
  Disk disk;
  AsynchronousStore store(disk, {.folder = folder.path(), .on_failure = OnFailure::kContinue});
  disk.full = true;
  EXPECT_THAT(logged_by([&] {
                store.write(content_of(example(1)));
                store.write(content_of(example(2)));
                store.finish();
              }),
              AllOf(HasSubstr("error: the checkpoint of step 1 was not written"), HasSubstr("The run goes on"),
                    HasSubstr("the checkpoint of step 2 was not written")));
  EXPECT_EQ(store.failures(), 2);
  disk.full = false;
  store.write(content_of(example(3)));
  store.finish();
  EXPECT_EQ(newest_in(folder.path()), example(3));
}

TEST(AsynchronousStore, ItsEndWaitsAndSaysWhatWentWrong) {
  const TemporaryFolder folder;
  {
    AsynchronousStore store(system_calls(), {.folder = folder.path()});
    store.write(content_of(example(1)));
  }
  EXPECT_EQ(newest_in(folder.path()), example(1));
  Disk disk;
  disk.full = true;
  EXPECT_THAT(logged_by([&] {
                AsynchronousStore store(disk, {.folder = folder.path()});
                store.write(content_of(example(2)));
              }),
              HasSubstr("error: the checkpoint of step 2 was not written"));
}

TEST(AsynchronousStore, WhatCannotBeWrittenKeepsItsType) {
  const TemporaryFolder folder;
  AsynchronousStore store(system_calls(), {.folder = folder.path()});
  Content content = content_of(example(1));
  content.state = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  store.write(content);
  expect_error<InvalidArgument>([&] { store.finish(); }, {"step 1", "state.loss", "not finite"});
}

}  // namespace asynchronous_store_test
}  // namespace brigade::guard
