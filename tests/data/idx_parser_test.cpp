#include "data/idx_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "brigade/base/error.h"
#include "data/gzip_source.h"
#include "data/idx_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace idx_parser_test {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;

IdxArray parse(const Bytes& bytes, std::uint64_t max_bytes = kLimit) {
  MemorySource source("some.idx", bytes);
  return parse_idx(source, max_bytes);
}

IdxArray parse_packed(const Bytes& packed, std::uint64_t max_bytes = kLimit) {
  GzipSource source(std::make_unique<MemorySource>("some.idx.gz", packed));
  return parse_idx(source, max_bytes);
}

void expect_refused(const Bytes& bytes, std::initializer_list<std::string> parts) {
  expect_error<DataError>([&] { parse(bytes); }, parts);
}

// Promises what a sparse file of 2^40 bytes would, delivers what it is given, and notes how much was ever asked for at
// once.
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

TEST(IdxParser, ReadsArraysOfOneToEightDimensions) {
  for (const std::vector<std::uint32_t>& sizes : {std::vector<std::uint32_t>{5}, {3, 2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}}) {
    const Bytes file = idx_file(sizes);
    const IdxArray array = parse(file);
    EXPECT_EQ(array.sizes, std::vector<std::int64_t>(sizes.begin(), sizes.end()));
    EXPECT_EQ(array.bytes, Bytes(file.begin() + 4 + 4 * static_cast<std::ptrdiff_t>(sizes.size()), file.end()));
  }
}

TEST(IdxParser, ReadsDimensionsAsBigEndian) {
  const IdxArray array = parse(idx_file({0x10203}));
  EXPECT_EQ(array.sizes, std::vector<std::int64_t>{66051});
}

TEST(IdxParser, ReadsMoreThanOneChunkInOrder) {
  const Bytes file = idx_file({3, 1 << 20});
  EXPECT_EQ(parse(file).bytes, Bytes(file.begin() + 12, file.end()));
  EXPECT_EQ(parse_packed(gzip(file)).bytes, Bytes(file.begin() + 12, file.end()));
}

TEST(IdxParser, RefusesWhatIsNoIdxFile) {
  expect_refused({}, {"some.idx: ends within the first four bytes", "0 of 4"});
  Bytes text(10, std::byte{'a'});
  expect_refused(text, {"starts with the bytes 61 61 61 61", "00 00", "plain or packed by gzip"});
}

TEST(IdxParser, RefusesOtherElementTypesByName) {
  expect_refused(idx_header({1}, 0x09), {"signed bytes (type 0x09)", "Only unsigned bytes (type 0x08)", "convert"});
  expect_refused(idx_header({1}, 0x0B), {"16-bit integers"});
  expect_refused(idx_header({1}, 0x0C), {"32-bit integers"});
  expect_refused(idx_header({1}, 0x0D), {"32-bit floats"});
  expect_refused(idx_header({1}, 0x0E), {"64-bit floats"});
  expect_refused(idx_header({1}, 0x77), {"unknown type (type 0x77)"});
}

TEST(IdxParser, RefusesNoneAndTooManyDimensions) {
  expect_refused(idx_header({}), {"has 0 dimensions", "1 to 8"});
  expect_refused(idx_file(std::vector<std::uint32_t>(9, 1)), {"has 9 dimensions", "1 to 8"});
}

TEST(IdxParser, RefusesAHeaderThatIsCutShort) {
  Bytes header = idx_header({3, 2, 4});
  header.pop_back();
  expect_refused(header, {"ends within its dimensions", "11 of 12", "fetch it again"});
}

TEST(IdxParser, RefusesADimensionOfZero) { expect_refused(idx_header({4, 0, 7}), {"holds nothing", "4 x 0 x 7"}); }

TEST(IdxParser, RefusesDimensionsWhoseProductOverflows) {
  expect_refused(idx_header({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}), {"4294967295 x 4294967295 x 4294967295", "limit"});
  // 2^64 exactly, which wraps to 0.
  expect_refused(idx_header({0x80000000, 0x80000000, 4}), {"2147483648 x 2147483648 x 4", "limit"});
}

TEST(IdxParser, RefusesMoreThanTheLimit) {
  const Bytes file = idx_file({10, 10});
  EXPECT_EQ(parse(file, 100).bytes.size(), 100u);
  expect_error<DataError>([&] { parse(file, 99); }, {"10 x 10 bytes", "limit of 99", "max_bytes"});
}

TEST(IdxParser, RefusesElementsThatAreCutShort) {
  Bytes file = idx_file({3, 2, 4});
  file.pop_back();
  expect_refused(file, {"some.idx", "3 x 2 x 4 = 24 bytes", "at most 23", "fetch it again"});
}

TEST(IdxParser, RefusesBytesBehindTheElements) {
  Bytes file = idx_file({3, 2, 4});
  file.push_back(std::byte{0});
  expect_refused(file, {"goes on after its 24 elements (3 x 2 x 4)", "appended"});
}

TEST(IdxParser, BelievesNoHeaderThatTheFileCannotHold) {
  Bytes file = idx_header({0x40000000});
  file.resize(30);
  expect_refused(file, {"1073741824", "at most 22"});
}

TEST(IdxParser, AsksForMemoryOnlyAsBytesArrive) {
  Bytes file = idx_header({0x40000000});
  file.resize(30);
  BoastfulSource source(file);
  expect_error<DataError>([&] { parse_idx(source, kLimit); }, {"ends after 22 of 1073741824 elements"});
  EXPECT_LE(source.largest_request, std::size_t{1} << 20);
}

TEST(PackedIdx, ReadsOneMemberOrSeveral) {
  const Bytes file = idx_file({3, 2, 4});
  EXPECT_EQ(parse_packed(gzip(file)).bytes, parse(file).bytes);
  Bytes members = gzip(Bytes(file.begin(), file.begin() + 7));
  append(members, gzip({}));
  append(members, gzip(Bytes(file.begin() + 7, file.end())));
  EXPECT_EQ(parse_packed(members).bytes, parse(file).bytes);
}

TEST(PackedIdx, RefusesEveryTruncation) {
  const Bytes packed = gzip(idx_file({3, 2, 4}));
  for (std::size_t size = 2; size < packed.size(); ++size) {
    expect_error<DataError>(
        [&] { parse_packed(Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size))); },
        {"some.idx.gz", "cut short"});
  }
}

TEST(PackedIdx, RefusesAWrongChecksum) {
  Bytes packed = gzip(idx_file({3, 2, 4}));
  packed[packed.size() - 8] ^= std::byte{1};
  expect_error<DataError>([&] { parse_packed(packed); }, {"gzip stream is damaged", "incorrect data check"});
}

TEST(PackedIdx, RefusesBytesBehindTheStream) {
  Bytes packed = gzip(idx_file({3, 2, 4}));
  packed.resize(packed.size() + 5);
  expect_error<DataError>([&] { parse_packed(packed); }, {"followed by other bytes"});
}

TEST(PackedIdx, DoesNotUnpackABomb) {
  Bytes bomb = idx_header({10});
  bomb.resize(std::size_t{64} << 20);
  const Bytes packed = gzip(bomb);
  auto memory = std::make_unique<MemorySource>("bomb.gz", packed);
  const MemorySource& rest = *memory;
  GzipSource source(std::move(memory));
  expect_error<DataError>([&] { parse_idx(source, kLimit); }, {"bomb.gz", "goes on after its 10 elements"});
  // Of 65 KB one buffer at most was taken in; what it would unpack to was never made.
  EXPECT_LE(packed.size() - rest.at_most(), 65536u);
}

TEST(PackedIdx, BelievesNoHeaderThatTheStreamCannotHold) {
  Bytes file = idx_header({0x40000000});
  file.resize(30);
  expect_error<DataError>([&] { parse_packed(gzip(file)); }, {"1073741824 bytes, but at most"});
}

TEST(PackedIdx, RefusesWhatUnpacksToTooFewElements) {
  Bytes file = idx_file({3, 2, 4});
  file.pop_back();
  expect_error<DataError>([&] { parse_packed(gzip(file)); }, {"ends after 23 of 24 elements"});
}

}  // namespace idx_parser_test
}  // namespace brigade::data
