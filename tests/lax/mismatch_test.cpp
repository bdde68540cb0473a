// Devices that give one collective different tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace mismatch_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

using Leaves = std::map<std::string, torch::Tensor>;

// A collective of leaves a, b and c, of which `other` is b on device 1.
template <class Collective>
auto with_other_b(Collective collective, torch::Tensor other) {
  return [=] {
    pmap(
        [&](torch::Tensor t) {
          Leaves leaves = {{"a", t}, {"b", lax::axis_index("i") == 1 ? other : t}, {"c", t}};
          return collective(std::move(leaves));
        },
        {.axis_name = "i"})(torch::ones({3, 2}));
  };
}

const auto kPsum = [](Leaves leaves) { return lax::psum(std::move(leaves), "i"); };

TEST(Mismatches, NameTheLeafThatDiffers) {
  const auto names_b = [](const char* difference) {
    return ThrowsMessage<CollectiveMismatch>(
        AllOf(HasSubstr(difference), HasSubstr("(argument b, device "), HasSubstr("mismatch_test.cpp:")));
  };
  const torch::Tensor ints = torch::ones({2}, torch::kInt), longer = torch::ones({4});
  EXPECT_THAT(with_other_b(kPsum, ints), names_b("dtype of piece 1"));
  EXPECT_THAT(with_other_b(kPsum, longer), names_b("size of piece 1"));
  EXPECT_THAT(with_other_b([](const Leaves& leaves) { return lax::pmean(leaves, "i", {.weight = 2}); }, longer),
              names_b("size of piece 1"));
  EXPECT_THAT(with_other_b([](const Leaves& leaves) { return lax::all_gather(leaves, "i"); }, ints),
              names_b("dtype of piece 1"));
  EXPECT_THAT(with_other_b(
                  [](const Leaves& leaves) {
                    return lax::ppermute(leaves, "i", {{0, 1}});
                  },
                  longer),
              names_b("size of piece 1"));
}

TEST(Mismatches, NameNoLeafWhenSomethingElseDiffers) {
  const auto different = [](const Leaves& leaves) {
    return lax::axis_index("i") == 1 ? lax::pmax(leaves, "i") : lax::psum(leaves, "i");
  };
  EXPECT_THAT(with_other_b(different, torch::ones({2})),
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("different tags"), Not(HasSubstr("argument")))));
}

TEST(Mismatches, AreKnownToWhoCatchesThem) {
  try {
    with_other_b(kPsum, torch::ones({4}))();
    FAIL() << "nothing was thrown";
  } catch (const CollectiveMismatch& error) {
    EXPECT_EQ(error.piece(), 1);
    EXPECT_EQ(error.context().argument, "b");
  }
}

}  // namespace mismatch_test
}  // namespace brigade
