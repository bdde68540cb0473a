#include "data/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "brigade/base/error.h"
#include "data/idx_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace byte_source_test {

Bytes read_all(ByteSource& source) {
  Bytes bytes(1000);
  bytes.resize(source.read(bytes));
  return bytes;
}

TEST(OpenBytes, ReadsPlainAndPackedFilesWhateverTheirName) {
  const TemporaryFolder folder;
  const Bytes content = idx_file({100});
  const auto plain = folder.write("plain.gz", content);
  const auto packed = folder.write("packed", gzip(content));
  EXPECT_EQ(read_all(*open_bytes(plain)), content);
  EXPECT_EQ(read_all(*open_bytes(packed)), content);
}

TEST(OpenBytes, ReadsFilesShorterThanAMagicNumber) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_all(*open_bytes(folder.write("empty", {}))), Bytes{});
  EXPECT_EQ(read_all(*open_bytes(folder.write("one", {std::byte{0x1f}}))), Bytes{std::byte{0x1f}});
}

TEST(FileSource, KnowsHowMuchIsStillToCome) {
  const TemporaryFolder folder;
  FileSource file(folder.write("file", Bytes(10)));
  EXPECT_EQ(file.at_most(), 10u);
  std::array<std::byte, 4> part = {};
  EXPECT_EQ(file.read(part), 4u);
  EXPECT_EQ(file.at_most(), 6u);
  file.rewind();
  EXPECT_EQ(file.at_most(), 10u);
}

TEST(FileSource, RefusesAMissingFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "absent";
  expect_error<DataError>([&] { FileSource file(path); }, {path.string(), "there is no such file"});
}

TEST(FileSource, RefusesAFolder) {
  const TemporaryFolder folder;
  expect_error<DataError>([&] { FileSource file(folder.path()); },
                          {folder.path().string(), "is a directory", "regular file"});
}

TEST(FileSource, RefusesAPipeWithoutWaitingForItsWriter) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_error<DataError>([&] { FileSource file(path); }, {path.string(), "is a pipe"});
}

TEST(FileSource, RefusesADevice) {
  expect_error<DataError>([] { FileSource file("/dev/zero"); }, {"/dev/zero", "is a device"});
}

TEST(FileSource, RefusesASymbolicLinkWhereItIsTold) {
  const TemporaryFolder folder;
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(folder.write("file", Bytes(3)), link);
  EXPECT_EQ(FileSource(link).at_most(), 3u);
  expect_error<DataError>([&] { FileSource file(link, SymbolicLinks::kRefuse); },
                          {link.string(), "is a symbolic link", "Give the file itself"});
}

TEST(FileSource, SaysWhyAFileCannotBeOpened) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "loop";
  std::filesystem::create_symlink(path, path);
  expect_error<DataError>([&] { FileSource file(path); }, {path.string(), "cannot be opened", "symbolic links"});
}

}  // namespace byte_source_test
}  // namespace brigade::data
