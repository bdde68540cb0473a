// Lines of comma-separated values, as RFC 4180 has them, without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace brigade::data {

inline constexpr std::size_t kCsvMaxRecord = std::size_t{16} << 20;  // bytes
inline constexpr std::size_t kCsvMaxFields = std::size_t{1} << 20;   // of a record

// One row, which quoted line breaks may spread over several lines.
class CsvRecord {
 public:
  std::uint64_t line = 0;  // of its first byte, from 1

  std::size_t size() const noexcept { return ends_.size(); }
  std::string_view operator[](std::size_t field) const {
    const std::size_t begin = field == 0 ? 0 : ends_[field - 1];
    return std::string_view(text_).substr(begin, ends_[field] - begin);
  }

 private:
  friend class CsvReader;
  std::string text_;               // all fields, one behind the other, without quotes and separators
  std::vector<std::size_t> ends_;  // of each field in it
};

class CsvReader {
 public:
  // `source` must outlive the reader. No more than max_bytes of it are read.
  CsvReader(ByteSource& source, char separator, std::uint64_t max_bytes);

  // The next row that is no empty line, or false at the end. `record`'s memory is used again. Throws DataError, naming
  // the line, for quotes that do not fit, a byte of zero, a carriage return without a line feed, and a record too large.
  bool next(CsvRecord& record);

 private:
  // As std::char_traits<char>::to_int_type has them; kEnd behind the last.
  int peek();
  int take();
  bool refill();

  void read_record(CsvRecord& record);
  void read_field(CsvRecord& record);
  void read_quoted(CsvRecord& record);
  void append(CsvRecord& record, int byte) const;
  bool at_line_end();
  [[noreturn]] void refuse_at(std::uint64_t line, std::string_view problem) const;

  ByteSource& source_;
  const int separator_;
  const std::uint64_t max_bytes_;
  std::uint64_t taken_ = 0;  // bytes asked of the source and received
  std::uint64_t line_ = 1;   // of the next byte
  std::vector<std::byte> buffer_;
  std::span<const std::byte> rest_;  // of the buffer
};

}  // namespace brigade::data
