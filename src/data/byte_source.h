// Bytes that arrive in order, from a file or from memory. Readers of file formats are written against this, so that
// they can be tested and fuzzed without files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "brigade/data/files.h"

namespace brigade::data {

class ByteSource {
 public:
  // `name` stands for the source in messages.
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out` from its front and returns how many bytes that were: fewer than out.size() at the end only.
  virtual std::size_t read(std::span<std::byte> out) = 0;

  // No more than this many bytes are still to come; exact for files and memory. A reader compares it with what a header
  // announces before it believes the header.
  virtual std::uint64_t at_most() const = 0;

  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

class MemorySource final : public ByteSource {
 public:
  // `bytes` must outlive the source.
  MemorySource(std::string name, std::span<const std::byte> bytes) : ByteSource(std::move(name)), rest_(bytes) {}

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t at_most() const override { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

// Throws DataError when the file is missing, cannot be read or is no regular file: a pipe or a terminal could keep us
// waiting for ever. Also when it is a symbolic link, if those are to be refused.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path, SymbolicLinks links = SymbolicLinks::kFollow);
  ~FileSource() override;

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t at_most() const override { return size_ > delivered_ ? size_ - delivered_ : 0; }

  void rewind();  // the next read starts at the file's first byte again

 private:
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t delivered_ = 0;
};

// The file's bytes, unpacked when it is a gzip file. Its first bytes decide, not its name.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

}  // namespace brigade::data
