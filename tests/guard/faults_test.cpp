// The n-th call of every operation fails, once or from then on, until a run meets no fault.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <cerrno>

#include "brigade/base/error.h"
#include "guard/support.h"

namespace brigade::guard {
namespace faults_test {

using namespace testing;

enum class Operation { kOpen, kRead, kWrite, kFsync, kClose, kRename, kExchange, kMkdir, kUnlink };

constexpr Operation kOperations[] = {Operation::kOpen,     Operation::kRead,  Operation::kWrite,
                                     Operation::kFsync,    Operation::kClose, Operation::kRename,
                                     Operation::kExchange, Operation::kMkdir, Operation::kUnlink};

struct Fault {
  Operation operation;
  int number;  // of the call, from 1
  bool persistent;
  int code;
};

class FailingCalls final : public SystemCalls {
 public:
  explicit FailingCalls(Fault fault) : fault_(fault) {}

  bool met() const { return met_ > 0; }
  int failed_fsyncs() const { return fault_.operation == Operation::kFsync ? met_ : 0; }
  int fsyncs_of_failed() const { return fsyncs_of_failed_; }

  int open(int folder, const char* name, int flags, mode_t mode) override {
    return fails(Operation::kOpen) ? -1 : SystemCalls::open(folder, name, flags, mode);
  }
  ssize_t read(int file, void* bytes, std::size_t size) override {
    return fails(Operation::kRead) ? -1 : SystemCalls::read(file, bytes, size);
  }
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    if (!fails(Operation::kWrite)) return SystemCalls::write(file, bytes, size);
    (void)SystemCalls::write(file, bytes, size / 2);  // what arrived before the disk was full
    errno = fault_.code;
    return -1;
  }
  int fsync(int file) override {
    if (file == failed_fsync_) ++fsyncs_of_failed_;
    if (!fails(Operation::kFsync)) return SystemCalls::fsync(file);
    failed_fsync_ = file;
    return -1;
  }
  int close(int file) override {
    if (file == failed_fsync_) failed_fsync_ = -1;
    const int result = SystemCalls::close(file);  // Linux releases the descriptor whatever it says
    return fails(Operation::kClose) ? -1 : result;
  }
  int rename(int folder, const char* from, const char* to) override {
    return fails(Operation::kRename) ? -1 : SystemCalls::rename(folder, from, to);
  }
  int exchange(int folder, const char* one, const char* other) override {
    return fails(Operation::kExchange) ? -1 : SystemCalls::exchange(folder, one, other);
  }
  int mkdir(int folder, const char* name, mode_t mode) override {
    return fails(Operation::kMkdir) ? -1 : SystemCalls::mkdir(folder, name, mode);
  }
  int unlink(int folder, const char* name, int flags) override {
    return fails(Operation::kUnlink) ? -1 : SystemCalls::unlink(folder, name, flags);
  }

 private:
  bool fails(Operation operation) {
    if (operation != fault_.operation) return false;
    ++count_;
    if (fault_.persistent ? count_ < fault_.number : count_ != fault_.number) return false;
    ++met_;
    errno = fault_.code;
    return true;
  }

  const Fault fault_;
  int count_ = 0;
  int met_ = 0;
  int failed_fsync_ = -1;
  int fsyncs_of_failed_ = 0;
};

struct Attempt {
  bool met = false;
  bool threw = false;
};

// A run with checkpoints of steps 1 and 2 writes `content`.
Attempt attempt(const std::filesystem::path& folder, const Fault& fault, const Loaded& content) {
  FailingCalls calls(fault);
  Attempt result;
  try {
    Store store(calls, {.folder = folder, .keep_last = 2});
    store.write(content_of(content));
  } catch (const DataError& error) {
    result.threw = true;
    EXPECT_NE(std::string(error.what()).find(folder.string()), std::string::npos) << error.what();
  }
  result.met = calls.met();
  EXPECT_EQ(calls.fsyncs_of_failed(), 0) << "a failed flush was tried again";
  return result;
}

// Whatever fails: the newest is `content` or what was the newest before, and a later run goes on.
void expect_safe(const Fault& fault, const Loaded& content, bool& met) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  Attempt result;
  (void)logged_by([&] { result = attempt(folder.path(), fault, content); });  // of old ones that cannot be removed
  met = result.met;
  const auto found = newest_in(folder.path());
  ASSERT_TRUE(found.has_value());
  if (!result.threw || !result.met) {
    EXPECT_EQ(found, content);
  } else {
    EXPECT_TRUE(*found == content || *found == example(2)) << found->state;
  }
  EXPECT_TRUE(met || !result.threw);
  write(folder.path(), {9}, 2);
  EXPECT_EQ(newest_in(folder.path()), example(9));
  for (const std::string& name : names_in(folder.path())) EXPECT_FALSE(name.starts_with(".tmp")) << name;
}

void expect_safe_at_every_call(const Loaded& content, const std::vector<Operation>& unused) {
  for (const Operation operation : kOperations) {
    for (const bool persistent : {false, true}) {
      for (const int code : {EIO, ENOSPC}) {
        int calls = 0;
        for (bool met = true; met; ++calls) {
          ASSERT_LT(calls, 200);
          SCOPED_TRACE("operation " + std::to_string(static_cast<int>(operation)) + ", call " +
                       std::to_string(calls + 1) + (persistent ? " and all after it, " : ", ") + std::to_string(code));
          expect_safe({operation, calls + 1, persistent, code}, content, met);
          if (::testing::Test::HasFailure()) return;
        }
        const bool is_used = std::find(unused.begin(), unused.end(), operation) == unused.end();
        EXPECT_EQ(calls > 1, is_used) << "operation " << static_cast<int>(operation);
      }
    }
  }
}

TEST(Faults, OfAnyCallLeaveTheNewCheckpointOrTheOneBefore) {
  expect_safe_at_every_call(example(3), {Operation::kExchange});
}

TEST(Faults, WhileACheckpointIsReplacedLeaveTheNewOneOrTheOld) {
  expect_safe_at_every_call(example(2, 1), {Operation::kRename});
}

// The file system of some disks cannot exchange two names.
class WithoutExchange final : public SystemCalls {
 public:
  int exchange(int, const char*, const char*) override {
    errno = EINVAL;
    return -1;
  }
};

TEST(Faults, ACheckpointIsReplacedWhereNamesCannotBeExchanged) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  WithoutExchange calls;
  Store store(calls, {.folder = folder.path()});
  store.write(content_of(example(2, 1)));
  EXPECT_EQ(newest_in(folder.path()), example(2, 1));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre(".lock", "step-00000001", "step-00000002"));
}

// One of the renames that stand for an exchange fails, where there is only that one checkpoint.
class FailingRename final : public SystemCalls {
 public:
  explicit FailingRename(int number) : number_(number) {}
  int exchange(int, const char*, const char*) override {
    errno = ENOSYS;
    return -1;
  }
  int rename(int folder, const char* from, const char* to) override {
    errno = EIO;
    return ++calls_ == number_ ? -1 : SystemCalls::rename(folder, from, to);
  }

 private:
  const int number_;
  int calls_ = 0;
};

TEST(Faults, OfARenameThatStandsForAnExchangeLoseNothing) {
  for (const int number : {1, 2, 3}) {
    const TemporaryFolder folder;
    write(folder.path(), {2});
    FailingRename calls(number);
    {
      Store store(calls, {.folder = folder.path()});
      EXPECT_THROW(store.write(content_of(example(2, 1))), DataError);
    }
    EXPECT_EQ(newest_in(folder.path()), number < 3 ? example(2) : example(2, 1)) << number;
    write(folder.path(), {3});
    EXPECT_EQ(names_in(folder.path()).size(), 3u) << "the lock and two checkpoints";
  }
}

// Signals interrupt calls, and writes may take less than they were given.
class Halting final : public SystemCalls {
 public:
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    if (interrupted()) return -1;
    return SystemCalls::write(file, bytes, std::min<std::size_t>(size, 3));
  }
  ssize_t read(int file, void* bytes, std::size_t size) override {
    if (interrupted()) return -1;
    return SystemCalls::read(file, bytes, std::min<std::size_t>(size, 2));
  }

 private:
  bool interrupted() {
    errno = EINTR;
    return ++calls_ % 2 == 1;
  }
  int calls_ = 0;
};

TEST(Faults, InterruptedAndShortCallsAreContinued) {
  const TemporaryFolder folder;
  Halting calls;
  Store store(calls, {.folder = folder.path()});
  store.write(content_of(example(3)));
  EXPECT_EQ(newest_in(folder.path()), example(3));
}

// A disk that keeps other bytes than it was given.
class Lying final : public SystemCalls {
 public:
  ssize_t read(int file, void* bytes, std::size_t size) override {
    const ssize_t count = SystemCalls::read(file, bytes, size);
    if (count > 0) static_cast<char*>(bytes)[0] ^= 1;
    return count;
  }
};

TEST(Faults, BytesThatAreReadBackOtherwiseAreNoCheckpoint) {
  const TemporaryFolder folder;
  write(folder.path(), {1});
  Lying calls;
  Store store(calls, {.folder = folder.path()});
  try {
    store.write(content_of(example(2)));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is not what was written"));
  }
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre(".lock", "step-00000001"));
}

}  // namespace faults_test
}  // namespace brigade::guard
