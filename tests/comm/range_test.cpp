// Reductions into slices of several outputs, and copies, with either kind of store.
#include <gtest/gtest.h>

#include <array>

#include "comm/copy.h"
#include "comm/reduce_kernels.h"
#include "comm/reduce_support.h"

namespace brigade::comm {
namespace range_test {

using testing::Memory;
using testing::Oracle;

constexpr Stores kStores[] = {Stores::kCached, Stores::kStreaming};
constexpr std::size_t kLine = 64;

// A span that begins `shift` bytes into a line, among other bytes that nobody is to write.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t shift) : lines_(bytes / kLine + 4), shift_(shift), bytes_(bytes) {
    std::memset(lines_.data(), 0xA5, lines_.size() * kLine);
  }
  Guarded(std::span<const std::byte> values, std::size_t shift) : Guarded(values.size(), shift) { write(0, values); }

  void write(std::size_t at, std::span<const std::byte> values) {
    std::copy(values.begin(), values.end(), span().begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(lines_)).subspan(kLine + shift_, bytes_); }
  bool operator==(const Guarded& other) const {
    return std::memcmp(lines_.data(), other.lines_.data(), lines_.size() * kLine) == 0;
  }

 private:
  struct alignas(kLine) Line {
    std::array<std::byte, kLine> bytes;
  };

  std::vector<Line> lines_;
  std::size_t shift_;
  std::size_t bytes_;
};

class RangeOf : public ::testing::TestWithParam<Oracle> {
 protected:
  static constexpr std::size_t kCount = 2100;

  // Inputs that begin at different places of a line, and what they are reduced to.
  void prepare(int participants) {
    const std::vector<Memory> all = GetParam().inputs(participants, kCount);
    inputs_.clear();
    spans_.clear();
    for (std::size_t i = 0; i < all.size(); ++i) inputs_.emplace_back(all[i], i * bytes_ % kLine);
    for (Guarded& input : inputs_) spans_.push_back(input.span());
    expected_ = GetParam().reduced(reduction_, all);
  }

  // The range of outputs that begin `shifts` into a line.
  std::vector<Guarded> reduced_into(const std::vector<std::size_t>& shifts, Range range, Stores stores) {
    std::vector<Guarded> outs;
    for (const std::size_t shift : shifts) outs.emplace_back(kCount * bytes_, shift);
    std::vector<std::span<std::byte>> out_spans;
    for (Guarded& out : outs) out_spans.push_back(out.span());
    reduce_range(reduction_, GetParam().dtype, Addends(spans_), out_spans, range, stores);
    return outs;
  }

  const Reduction reduction_ = GetParam().reductions.front();
  const std::size_t bytes_ = size_of(GetParam().dtype);
  std::vector<Guarded> inputs_;
  std::vector<std::span<const std::byte>> spans_;
  Memory expected_;
};

TEST_P(RangeOf, IsWrittenToEveryOutputAndNothingElseIs) {
  // At the beginning of a line, some elements later, and where no element begins a line.
  const std::vector<std::vector<std::size_t>> shifts_of_outputs = {
      {0}, {bytes_}, {1}, {0, 0}, {3 * bytes_ % kLine, 0, 16, 1, 32}};
  for (const int participants : {1, 2, 3, 5}) {
    prepare(participants);
    for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, kCount}, {1, 2099}, {64, 1600}, {7, 7}}) {
      const Range range = {.begin = begin * bytes_, .end = end * bytes_};
      for (const std::vector<std::size_t>& shifts : shifts_of_outputs) {
        std::vector<Guarded> wanted;
        for (const std::size_t shift : shifts) {
          wanted.emplace_back(kCount * bytes_, shift);
          wanted.back().write(range.begin, std::span(expected_).subspan(range.begin, range.size()));
        }
        testing::on_every_target([&](const char* target) {
          for (const Stores stores : kStores) {
            ASSERT_TRUE(reduced_into(shifts, range, stores) == wanted)
                << participants << " participants, " << shifts.size() << " outputs, the first " << shifts[0]
                << " bytes into a line, from element " << range.begin / bytes_ << ", on " << target;
          }
        });
      }
    }
  }
}

// As participants do who reduce in place, each its range.
TEST_P(RangeOf, OutputsMayBeTheInputs) {
  for (const int participants : {2, 3, 4, 5, 9}) {
    for (const Stores stores : kStores) {
      prepare(participants);
      std::vector<std::span<std::byte>> outs;
      for (Guarded& input : inputs_) outs.push_back(input.span());
      for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 700}, {700, kCount}}) {
        const Range range = {.begin = begin * bytes_, .end = end * bytes_};
        reduce_range(reduction_, GetParam().dtype, Addends(spans_), outs, range, stores);
      }
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        ASSERT_TRUE(inputs_[i] == Guarded(expected_, i * bytes_ % kLine)) << "input " << i << " of " << participants;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, RangeOf, ::testing::ValuesIn(testing::oracles()), testing::dtype_in_name);

// A quotient that needs the undivided extremum first.
TEST(Range, DividesAMinIntoEveryOutput) {
  std::vector<float> a = {6, -4, 9};
  std::vector<float> b = {2, 8, 9};
  std::vector<float> other(3);
  const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(a)), std::as_bytes(std::span(b))};
  const std::vector<std::span<std::byte>> outs = {std::as_writable_bytes(std::span(other)),
                                                  std::as_writable_bytes(std::span(b))};
  reduce_range({.op = ReduceOp::kMin, .divisor = -2}, DType::kFloat32, Addends(inputs), outs, {.begin = 4, .end = 12},
               Stores::kCached);
  EXPECT_EQ(other, (std::vector<float>{0, 2, -4.5F}));
  EXPECT_EQ(b, (std::vector<float>{2, 2, -4.5F}));
}

TEST(Copy, IsOfAllBytesAndNoOthers) {
  std::vector<std::byte> bytes(2000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 % 251);
  testing::on_every_target([&](const char* target) {
    for (const Stores stores : kStores) {
      for (const std::size_t shift : {0, 1, 4, 31, 63}) {
        for (const std::size_t length : {0, 1, 15, 63, 64, 65, 127, 255, 256, 257, 1000, 1991}) {
          const auto from = std::span<const std::byte>(bytes).subspan(length % 8, length);
          Guarded to(length, shift);
          copy_bytes(from, to.span(), stores);
          ASSERT_TRUE(to == Guarded(from, shift)) << length << " bytes to " << shift << " on " << target;
        }
      }
    }
  });
}

TEST(Copy, OfAnythingToItselfChangesNothing) {
  std::vector<std::byte> bytes(300, std::byte{7});
  for (const Stores stores : kStores) copy_bytes(bytes, bytes, stores);
  EXPECT_EQ(bytes, std::vector<std::byte>(300, std::byte{7}));
}

}  // namespace range_test
}  // namespace brigade::comm
