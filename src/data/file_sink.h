// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace brigade::data {

// Writes to a file of another name in the same folder. Every function throws DataError, naming the file; unless commit()
// returned, the destructor removes what was written, and the file that had the name before is untouched.
class FileSink {
 public:
  // Creates the other file, readable and writable by its owner alone.
  explicit FileSink(const std::filesystem::path& path);
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  void write(std::span<const std::byte> bytes);

  // Flushes everything to the disk, and gives the file its name. A symbolic link of that name is replaced. At most once.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int code) const;

  std::filesystem::path path_;
  std::string partial_;  // empty once it has the file's name
  int descriptor_ = -1;
};

}  // namespace brigade::data
