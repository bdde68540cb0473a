#include "data/file_sink.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <iterator>

#include "brigade/base/error.h"
#include "data/files.h"
#include "support/errors.h"

namespace brigade::data {
namespace file_sink_test {

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(FileSink, GivesTheFileItsNameWhenItIsWhole) {
  const TemporaryFolder folder;
  const auto path = folder.write_text("file", "old");
  {
    FileSink sink(path);
    sink.write(text_bytes("new "));
    sink.write({});
    sink.write(text_bytes("content"));
    EXPECT_EQ(read_file(path), text_bytes("old"));
    sink.commit();
  }
  EXPECT_EQ(read_file(path), text_bytes("new content"));
  EXPECT_EQ(files_in(folder.path()), 1);
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(FileSink, LeavesWhatWasThereWhenItIsNotCommitted) {
  const TemporaryFolder folder;
  const auto path = folder.write_text("file", "old");
  {
    FileSink sink(path);
    sink.write(text_bytes("new content"));
  }
  EXPECT_EQ(read_file(path), text_bytes("old"));
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(FileSink, WritesIntoTheCurrentFolder) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  FileSink sink("file");
  sink.commit();
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "file"));
}

TEST(FileSink, SaysWhyAFileCannotBeCreatedOrNamed) {
  const TemporaryFolder folder;
  const auto absent = folder.path() / "absent" / "file";
  expect_error<DataError>([&] { FileSink sink(absent); }, {absent.string(), "cannot be created", "No such file"});
  const auto taken = folder.path() / "taken";
  std::filesystem::create_directory(taken);
  expect_error<DataError>(
      [&] {
        FileSink sink(taken);
        sink.commit();
      },
      {taken.string(), "cannot take its name", "directory"});
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(FileSink, SaysWhenThereIsNoRoomAndRemovesWhatItWrote) {
  const TemporaryFolder folder;
  const auto path = folder.write_text("file", "old");
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error<DataError>(
      [&] {
        FileSink sink(path);
        sink.write(Bytes(11));
      },
      {path.string(), "cannot be written", "File too large", "space"});
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(read_file(path), text_bytes("old"));
  EXPECT_EQ(files_in(folder.path()), 1);
}

}  // namespace file_sink_test
}  // namespace brigade::data
