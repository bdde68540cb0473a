#include "brigade/transform/sharded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/nine_devices.h"

namespace brigade {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Params {
  torch::Tensor w, b;
};

TEST(Replicate, GivesEveryDeviceAnEqualCopyOfItsOwn) {
  const Params p{torch::rand({3}), torch::rand({2})};
  const Sharded<Params> all = replicate(p);
  ASSERT_EQ(all.size(), 9);
  for (std::int64_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(torch::equal(all[i].w, p.w));
    EXPECT_NE(all[i].w.data_ptr(), p.w.data_ptr());
    if (i > 0) {
      EXPECT_NE(all[i].w.data_ptr(), all[i - 1].w.data_ptr());
    }
  }
}

TEST(Replicate, OntoNamedDevicesMakesThatMany) {
  EXPECT_EQ(replicate(torch::ones({1}), {devices()[3], devices()[1]}).size(), 2);
  EXPECT_THROW(replicate(torch::ones({1}), {}), InvalidArgument);
}

TEST(Sharded, StacksAlongTheAxisOfEachLeaf) {
  const Sharded<Params> s(
      {{torch::full({2}, 1.0), torch::full({1}, 7.0)}, {torch::full({2}, 2.0), torch::full({1}, 7.0)}}, Axes{1, none});
  const Params p = s.stack();
  EXPECT_TRUE(torch::equal(p.w, torch::tensor({{1.0F, 2.0F}, {1.0F, 2.0F}})));
  EXPECT_TRUE(torch::equal(p.b, torch::full({1}, 7.0)));
}

TEST(Sharded, StackOfNoneRefusesReplicasThatDiffer) {
  const Sharded<Params> s({{torch::ones({2}), torch::ones({1})}, {torch::ones({2}), torch::full({1}, 1.0F + 1e-7F)}},
                          Axes{0, none});
  EXPECT_THAT([&] { s.stack(); }, ThrowsMessage<InvalidArgument>(
                                      AllOf(HasSubstr("position 1 differs from position 0"), HasSubstr("argument b"))));
}

TEST(Sharded, StackRefusesShapesThatDifferAndAxesThatDoNotExist) {
  const Sharded<torch::Tensor> uneven({torch::ones({2}), torch::ones({3})});
  EXPECT_THAT([&] { uneven.stack(); }, ThrowsMessage<ShapeError>(AllOf(HasSubstr("[2]"), HasSubstr("[3]"))));
  const Sharded<torch::Tensor> s({torch::ones({2}), torch::ones({2})}, 2);
  EXPECT_THAT([&] { s.stack(); }, ThrowsMessage<ShapeError>(HasSubstr("from -2 to 1")));
}

TEST(Sharded, StackComparesWhatTensorsMeanAndNotTheirMemory) {
  const torch::Tensor z = torch::complex(torch::ones({2}), torch::ones({2}));
  EXPECT_THROW((Sharded<torch::Tensor>({z, z.conj()}, none).stack()), InvalidArgument);
  EXPECT_NO_THROW((Sharded<torch::Tensor>({z.conj(), z.conj().resolve_conj()}, none).stack()));
  EXPECT_THAT(
      [] {
        (Sharded<torch::Tensor>({torch::ones({2}), torch::ones({2}, torch::kDouble)}).stack());
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("Float of shape [2]"), HasSubstr("Double of shape [2]"))));
  EXPECT_THAT(
      [] {
        (Sharded<torch::Tensor>({torch::ones({2}), torch::Tensor()}).stack());
      },
      ThrowsMessage<ShapeError>(HasSubstr("an undefined tensor")));
}

TEST(Sharded, UnzipKeepsThePartsOfOutAxes) {
  const Sharded<std::pair<torch::Tensor, torch::Tensor>> s(
      {{torch::ones({2}), torch::ones({1})}, {torch::ones({2}), torch::zeros({1})}}, Axes{1, none});
  const auto [a, b] = unzip(s);
  EXPECT_EQ(a.stack().sizes(), torch::IntArrayRef({2, 2}));
  EXPECT_THROW(b.stack(), InvalidArgument);
}

TEST(Sharded, ChecksPositionsAndSaysWhoTookADonatedValue) {
  Sharded<torch::Tensor> s({torch::ones({1}), torch::ones({1})});
  EXPECT_THAT([&] { s[2]; }, ThrowsMessage<InvalidArgument>(HasSubstr("position 2 of a Sharded over 2 devices")));
  EXPECT_THROW(s[-1], InvalidArgument);
  EXPECT_THROW(Sharded<torch::Tensor>()[0], InvalidArgument);
  s.donate("the pmap over axis \"i\"");
  EXPECT_THAT([&] { s[0]; },
              ThrowsMessage<InvalidArgument>(HasSubstr("passed with std::move to the pmap over axis \"i\"")));
}

TEST(Sharded, UnzipsTuplesAndPairs) {
  const Sharded<std::tuple<torch::Tensor, int>> s({{torch::ones({1}), 1}, {torch::zeros({1}), 2}});
  const auto [tensors, numbers] = unzip(s);
  EXPECT_TRUE(tensors[1].is_same(std::get<0>(s[1])));
  EXPECT_EQ(numbers[0], 1);
  const auto [first, second] = unzip(Sharded<std::pair<int, int>>({{1, 2}, {3, 4}}));
  EXPECT_EQ(first[1], 3);
  EXPECT_EQ(second[0], 2);
}

}  // namespace
}  // namespace brigade
