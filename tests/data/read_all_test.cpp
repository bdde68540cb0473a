#include "data/read_all.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "brigade/base/error.h"
#include "data/files.h"
#include "data/gzip_source.h"
#include "support/errors.h"

namespace brigade::data {
namespace read_all_test {

Bytes numbered(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(ReadAll, AppendsEveryByteWhateverTheSize) {
  for (const std::size_t count : {0ul, 1ul, 1000ul, (1ul << 20) - 1, 1ul << 20, (1ul << 20) + 1, 5000001ul}) {
    const Bytes content = numbered(count);
    Bytes bytes = {std::byte{42}};
    MemorySource plain("plain", content);
    read_all(plain, count + 1, bytes);
    GzipSource packed(std::make_unique<MemorySource>("packed", gzip(content)));
    Bytes expected = {std::byte{42}};
    append(expected, content);
    EXPECT_EQ(bytes, expected) << count;
    Bytes unpacked;
    const Bytes compressed = gzip(content);
    GzipSource source(std::make_unique<MemorySource>("packed", compressed));
    read_all(source, count, unpacked);
    EXPECT_EQ(unpacked, content) << count;
  }
}

TEST(ReadAll, RefusesMoreThanTheLimitOverAllSources) {
  const Bytes content = numbered(60);
  Bytes bytes(40);
  MemorySource fits("fits", content);
  read_all(fits, 100, bytes);
  EXPECT_EQ(bytes.size(), 100u);
  MemorySource more("more", std::span(content).first(1));
  expect_error<DataError>([&] { read_all(more, 100, bytes); }, {"more: exceeds the limit of 100 bytes", "max_bytes"});
}

// Promises 2^40 bytes, delivers what it is given, and notes how much was ever asked for at once.
class BoastfulSource final : public ByteSource {
 public:
  explicit BoastfulSource(const Bytes& bytes) : ByteSource("boast"), real_("boast", bytes) {}

  std::size_t read(std::span<std::byte> out) override {
    largest_request = std::max(largest_request, out.size());
    return real_.read(out);
  }
  std::uint64_t at_most() const override { return std::uint64_t{1} << 40; }

  std::size_t largest_request = 0;

 private:
  MemorySource real_;
};

TEST(ReadAll, AsksForMemoryOnlyAsBytesArrive) {
  const Bytes content = numbered(30);
  BoastfulSource source(content);
  Bytes bytes;
  read_all(source, std::uint64_t{1} << 40, bytes);
  EXPECT_EQ(bytes, content);
  EXPECT_LE(source.largest_request, (std::size_t{1} << 20) + 1);
}

}  // namespace read_all_test
}  // namespace brigade::data
