#include "brigade/comm/capabilities.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "brigade/comm/reduce.h"
#include "comm/support.h"

namespace brigade::comm {
namespace capabilities_test {

using testing::text_of;

// What reduce() throws of one element, or null.
std::exception_ptr outcome(Reduction reduction, DType dtype) {
  const std::array<std::byte, 16> in = {};
  std::array<std::byte, 16> out = {};
  const std::span<const std::byte> input = std::span(in).first(size_of(dtype));
  try {
    comm::reduce(reduction, dtype, {&input, 1}, std::span(out).first(size_of(dtype)));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

TEST(Capabilities, OfTheKernelsAreWhatTheyTakeAndRefuse) {
  const std::map<DType, std::string> expected = {
      {DType::kBool, "mM"},      {DType::kUint8, "smM"},    {DType::kInt8, "smM"},     {DType::kInt16, "smM"},
      {DType::kInt32, "smM"},    {DType::kInt64, "smM"},    {DType::kFloat16, "smM/"}, {DType::kBFloat16, "smM/"},
      {DType::kFloat32, "smM/"}, {DType::kFloat64, "smM/"}, {DType::kComplex64, "s/"}, {DType::kComplex128, "s/"},
  };
  ASSERT_EQ(expected.size(), kDTypeCount);
  for (const auto& [dtype, letters] : expected) {
    for (const auto& [op, letter] : {std::pair{ReduceOp::kSum, 's'}, {ReduceOp::kMin, 'm'}, {ReduceOp::kMax, 'M'}}) {
      for (const double divisor : {1.0, 2.5}) {
        const bool takes =
            letters.find(letter) != std::string::npos && (divisor == 1.0 || letters.find('/') != std::string::npos);
        const Reduction reduction = {.op = op, .divisor = divisor};
        EXPECT_EQ(kernel_capabilities().takes(reduction, dtype), takes) << name_of(op) << " of " << name_of(dtype);
        EXPECT_EQ(outcome(reduction, dtype) == nullptr, takes) << name_of(op) << " of " << name_of(dtype);
      }
    }
  }
}

TEST(Capabilities, OfDevicesInOneProcessAreAllOperationsAlsoStarted) {
  ThreadGroup group(2, testing::patient());
  const Capabilities& own = group.member(0).capabilities();
  EXPECT_TRUE(own.asynchronous);
  for (std::size_t i = 0; i < kOperationCount; ++i) EXPECT_TRUE(own.takes(static_cast<Operation>(i)));
}

TEST(Capabilities, RefusalsSayWhatIsTaken) {
  EXPECT_THAT(
      text_of<InvalidArgument>(outcome({}, DType::kBool)),
      ::testing::HasSubstr("sum of bool is not defined; bool takes min and max, without a divisor: convert to an "
                           "integer dtype first"));
  EXPECT_THAT(
      text_of<InvalidArgument>(outcome({.divisor = 4}, DType::kBool)),
      ::testing::HasSubstr("sum of bool with divisor 4 is not defined; bool takes min and max, without a divisor: "
                           "convert to a floating dtype first"));
  EXPECT_THAT(
      text_of<InvalidArgument>(outcome({.divisor = 2}, DType::kInt16)),
      ::testing::HasSubstr("sum of int16 with divisor 2 is not defined; int16 takes sum, min and max, without a "
                           "divisor: convert to a floating dtype first"));
  EXPECT_THAT(text_of<InvalidArgument>(outcome({.op = ReduceOp::kMax}, DType::kComplex64)),
              ::testing::HasSubstr("max of complex64 is not defined; complex64 takes sum, with any divisor"));
}

}  // namespace capabilities_test
}  // namespace brigade::comm
