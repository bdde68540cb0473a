#include "data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/errors.h"

namespace brigade::data {
namespace {

constexpr int kEnd = -1;
constexpr std::size_t kChunk = 65536;

}  // namespace

CsvReader::CsvReader(ByteSource& source, char separator, std::uint64_t max_bytes)
    : source_(source), separator_(static_cast<unsigned char>(separator)), max_bytes_(max_bytes), buffer_(kChunk) {
  // A byte order mark, which some programs write in front of UTF-8.
  refill();
  constexpr std::array<std::byte, 3> kMark = {std::byte{0xEF}, std::byte{0xBB}, std::byte{0xBF}};
  if (rest_.size() >= kMark.size() && std::ranges::equal(rest_.first<3>(), kMark)) rest_ = rest_.subspan(kMark.size());
}

bool CsvReader::next(CsvRecord& record) {
  while (at_line_end() && peek() != kEnd) take();
  if (peek() == kEnd) return false;
  read_record(record);
  return true;
}

bool CsvReader::refill() {
  rest_ = std::span(buffer_).first(source_.read(buffer_));
  taken_ += rest_.size();
  if (taken_ > max_bytes_) {
    refuse(source_.name(),
           fmt::format("holds more than the limit of {} bytes. Raise max_bytes if it should.", max_bytes_));
  }
  return !rest_.empty();
}

int CsvReader::peek() {
  if (rest_.empty() && !refill()) return kEnd;
  return std::to_integer<int>(rest_.front());
}

// A line feed, or the carriage return before one, is next, or nothing more.
bool CsvReader::at_line_end() {
  const int next = peek();
  return next == '\n' || next == '\r' || next == kEnd;
}

int CsvReader::take() {
  const int byte = peek();
  if (byte == kEnd) return byte;
  rest_ = rest_.subspan(1);
  if (byte == '\0') refuse_at(line_, "holds a byte of zero. Give a text file, in UTF-8 or another extension of ASCII.");
  if (byte == '\r' && peek() != '\n') {
    refuse_at(line_, "has a carriage return that no line feed follows. End lines in LF or CRLF.");
  }
  if (byte == '\n') ++line_;
  return byte;
}

void CsvReader::read_record(CsvRecord& record) {
  record.line = line_;
  record.text_.clear();
  record.ends_.clear();
  while (true) {
    read_field(record);
    if (record.ends_.size() == kCsvMaxFields) {
      refuse_at(record.line, fmt::format("has more than {} fields. Is the separator the right one?", kCsvMaxFields));
    }
    record.ends_.push_back(record.text_.size());
    if (peek() != separator_) break;
    take();
  }
  if (take() == '\r') take();
}

void CsvReader::read_field(CsvRecord& record) {
  if (peek() == '"') {
    read_quoted(record);
    if (peek() != separator_ && !at_line_end()) {
      refuse_at(line_,
                "has something between a closing quote and the separator. Quote whole fields, and double the "
                "quotes within.");
    }
    return;
  }
  while (peek() != separator_ && !at_line_end()) {
    if (peek() == '"') {
      refuse_at(line_,
                "has a quote within a field that does not begin with one. Quote whole fields, and double the "
                "quotes within.");
    }
    append(record, take());
  }
}

void CsvReader::read_quoted(CsvRecord& record) {
  const std::uint64_t opened = line_;
  take();
  while (true) {
    const int byte = take();
    if (byte == kEnd) refuse_at(opened, "opens a quote that is never closed.");
    if (byte == '"') {
      if (peek() != '"') return;
      take();
    }
    append(record, byte);
  }
}

void CsvReader::append(CsvRecord& record, int byte) const {
  if (record.text_.size() == kCsvMaxRecord) {
    refuse_at(record.line, fmt::format("begins a row of more than {} bytes. Is a quote left open?", kCsvMaxRecord));
  }
  record.text_ += static_cast<char>(byte);
}

void CsvReader::refuse_at(std::uint64_t line, std::string_view problem) const {
  refuse(source_.name(), fmt::format("line {} {}", line, problem));
}

}  // namespace brigade::data
