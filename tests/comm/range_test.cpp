// Reductions into slices of several outputs, and copies, with either kind of store.
#include <gtest/gtest.h>

#include <array>

#include "comm/copy.h"
#include "comm/reduce_kernels.h"
#include "comm/reduce_support.h"

namespace brigade::comm {
namespace {

using testing::bits_of;
using testing::values_of_all;

constexpr Stores kStores[] = {Stores::kCached, Stores::kStreaming};
constexpr std::size_t kLine = 64;

// A span that begins `shift` bytes into a line, among other bytes that nobody is to write.
class Memory {
 public:
  Memory(std::size_t bytes, std::size_t shift) : lines_(bytes / kLine + 4), shift_(shift), bytes_(bytes) {
    std::memset(lines_.data(), 0xA5, lines_.size() * kLine);
  }
  Memory(std::span<const std::byte> values, std::size_t shift) : Memory(values.size(), shift) { write(0, values); }

  void write(std::size_t at, std::span<const std::byte> values) {
    std::copy(values.begin(), values.end(), span().begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::span<std::byte> span() { return std::as_writable_bytes(std::span(lines_)).subspan(kLine + shift_, bytes_); }
  bool operator==(const Memory& other) const {
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

template <class T>
class RangeOf : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 2100;

  // Inputs that begin at different places of a line.
  void prepare(int participants) {
    all_ = values_of_all<T>(participants, kCount);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      inputs_.emplace_back(std::as_bytes(std::span(all_[i])), i * sizeof(T) % kLine);
    }
    for (Memory& input : inputs_) spans_.push_back(input.span());
    expected_ = testing::reduced(reduction_, all_);
  }

  std::span<const std::byte> expected(std::size_t begin, std::size_t end) const {
    return std::as_bytes(std::span(expected_).subspan(begin, end - begin));
  }

  const Reduction reduction_ = testing::reductions_of<T>().front();
  std::vector<std::vector<T>> all_;
  std::vector<Memory> inputs_;
  std::vector<std::span<const std::byte>> spans_;
  std::vector<T> expected_;
};
TYPED_TEST_SUITE(RangeOf, testing::AllTypes);

TYPED_TEST(RangeOf, IsWrittenToEveryOutputAndNothingElseIs) {
  constexpr std::size_t kBytes = sizeof(TypeParam);
  for (const int participants : {1, 2, 3, 5}) {
    this->spans_.clear();
    this->inputs_.clear();
    this->prepare(participants);
    for (const auto& [begin, end] :
         {std::pair<std::size_t, std::size_t>{0, this->kCount}, {1, 2099}, {64, 1600}, {7, 7}}) {
      const Range range = {.begin = begin * kBytes, .end = end * kBytes};
      // At the beginning of a line, some elements later, and where no element begins a line.
      for (const std::vector<std::size_t>& shifts :
           {std::vector<std::size_t>{0}, {kBytes}, {1}, {0, 0}, {3 * kBytes % kLine, 0, 16, 1, 32}}) {
        std::vector<Memory> wanted;
        for (const std::size_t shift : shifts) {
          wanted.emplace_back(this->kCount * kBytes, shift);
          wanted.back().write(range.begin, this->expected(begin, end));
        }
        testing::on_every_target([&](const char* target) {
          for (const Stores stores : kStores) {
            std::vector<Memory> outs;
            for (const std::size_t shift : shifts) outs.emplace_back(this->kCount * kBytes, shift);
            std::vector<std::span<std::byte>> out_spans;
            for (Memory& out : outs) out_spans.push_back(out.span());
            reduce_range(this->reduction_, testing::dtype_of<TypeParam>(), this->spans_, out_spans, range, stores);
            ASSERT_TRUE(outs == wanted) << participants << " participants, " << shifts.size()
                                        << " outputs, the first at " << shifts[0] << ", elements "
                                        << range.begin / kBytes << " and on, " << target;
          }
        });
      }
    }
  }
}

// As participants do who reduce in place, each its range.
TYPED_TEST(RangeOf, OutputsMayBeTheInputs) {
  constexpr std::size_t kBytes = sizeof(TypeParam);
  for (const int participants : {2, 3, 5, 9}) {
    for (const Stores stores : kStores) {
      this->spans_.clear();
      this->inputs_.clear();
      this->prepare(participants);
      std::vector<std::span<std::byte>> outs;
      for (Memory& input : this->inputs_) outs.push_back(input.span());
      for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 700}, {700, 2100}}) {
        const Range range = {.begin = begin * kBytes, .end = end * kBytes};
        reduce_range(this->reduction_, testing::dtype_of<TypeParam>(), this->spans_, outs, range, stores);
      }
      for (std::size_t i = 0; i < this->inputs_.size(); ++i) {
        const Memory wanted(this->expected(0, this->kCount), i * kBytes % kLine);
        ASSERT_TRUE(this->inputs_[i] == wanted) << "input " << i << " of " << participants;
      }
    }
  }
}

// A quotient that needs the undivided extremum first.
TEST(Range, DividesAMinIntoEveryOutput) {
  std::vector<float> a = {6, -4, 9};
  std::vector<float> b = {2, 8, 9};
  std::vector<float> other(3);
  const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(a)), std::as_bytes(std::span(b))};
  const std::vector<std::span<std::byte>> outs = {std::as_writable_bytes(std::span(other)),
                                                  std::as_writable_bytes(std::span(b))};
  reduce_range({.op = ReduceOp::kMin, .divisor = -2}, DType::kFloat32, inputs, outs, {.begin = 4, .end = 12},
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
          Memory to(length, shift);
          copy_bytes(from, to.span(), stores);
          ASSERT_TRUE(to == Memory(from, shift)) << length << " bytes to " << shift << " on " << target;
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

}  // namespace
}  // namespace brigade::comm
