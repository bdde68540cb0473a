// A folder that checkpoints lie in, held open: names are looked up in it whatever becomes of its path, and a symbolic link
// in place of a file or folder is an error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guard/system_calls.h"

namespace brigade::guard {

// An open file or folder.
class Descriptor {
 public:
  Descriptor(SystemCalls& calls, int number) : calls_(&calls), number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : calls_(other.calls_), number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const noexcept { return number_; }

  // The result of the call; afterwards there is nothing to close, whether it failed or not.
  int close() { return number_ < 0 ? 0 : calls_->close(std::exchange(number_, -1)); }

 private:
  SystemCalls* calls_;
  int number_;
};

enum class Missing { kIsAnError, kIsMade };

// Every function throws DataError with the path, what failed and what to do.
class Folder {
 public:
  // Symbolic links that lead to it are followed. What is made has mode 0700.
  static Folder open(SystemCalls& calls, const std::filesystem::path& path, Missing missing);

  Folder child(const std::string& name) const;
  Descriptor open_file(const std::string& name, int flags, mode_t mode = 0) const;

  void make(const std::string& name) const;  // a folder, of mode 0700
  void flush() const;                        // its entries, to the disk
  void rename(const std::string& from, const std::string& to) const;

  // Puts `fresh` in the place of `old`, which gets the name `fresh`: at once where the file system can, else one after the
  // other by way of the name `aside`.
  void exchange(const std::string& fresh, const std::string& old, const std::string& aside) const;

  // Removes a folder with the files named; false when it is not gone afterwards. Throws nothing.
  bool remove(const std::string& name, const std::vector<std::string>& files) const noexcept;

  bool has(const std::string& name) const;
  std::vector<std::string> names() const;

  SystemCalls& calls() const noexcept { return *calls_; }
  int number() const noexcept { return descriptor_.number(); }
  const std::string& path() const noexcept { return path_; }

  // The path of an entry, for messages.
  std::string path_of(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, std::string_view what, int code) const;

 private:
  Folder(SystemCalls& calls, std::string path, int number)
      : calls_(&calls), path_(std::move(path)), descriptor_(calls, number) {}

  SystemCalls* calls_;
  std::string path_;
  Descriptor descriptor_;
};

}  // namespace brigade::guard
