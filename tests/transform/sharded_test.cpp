#include "brigade/transform/sharded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <cstring>

#include "support/nine_devices.h"

namespace brigade {
namespace sharded_test {

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
                                      AllOf(HasSubstr("replicas that should be equal are not: position 0 holds 1 at "
                                                      "element 0 of shape [1] and position 1 holds 1.0000001192092896"),
                                            HasSubstr("argument b"), HasSubstr("sharded_test.cpp:"))));
  EXPECT_EQ(s.stack(Agreement::kAssumed).b.item<float>(), 1.0F);
}

TEST(Sharded, UnreplicateGivesTheValueOfPositionZeroWithoutACopy) {
  const Sharded<Params> all = replicate(Params{torch::rand({3}), torch::rand({2})});
  EXPECT_EQ(all.unreplicate().w.data_ptr(), all[0].w.data_ptr());
  EXPECT_EQ(&all.unreplicate(), &all[0]);
}

TEST(Sharded, UnreplicateNamesTheLeafThePositionAndTheElementThatDiffer) {
  struct State {
    std::vector<torch::Tensor> layers;
    std::int64_t step;
  };
  const auto state = [](float last, std::int64_t step) {
    return State{{torch::ones({2}), torch::tensor({{1.0F, 2.0F}, {3.0F, last}})}, step};
  };
  const Sharded<State> drifted({state(4, 7), state(4, 7), state(5, 7)});
  EXPECT_THAT([&] { drifted.unreplicate(); },
              ThrowsMessage<InvalidArgument>(AllOf(
                  HasSubstr("position 0 holds 4 at element 3 of shape [2, 2] and position 2 holds 5"),
                  HasSubstr("argument layers[1]"), HasSubstr("Agreement::kAssumed"), HasSubstr("sharded_test.cpp:"))));
  EXPECT_EQ(drifted.unreplicate(Agreement::kAssumed).layers[1][1][1].item<float>(), 4);
  const Sharded<State> behind({state(4, 7), state(4, 6)});
  EXPECT_THAT([&] { behind.unreplicate(); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("position 0 holds 7 and position 1 holds 6"), HasSubstr("argument step"))));
}

TEST(Sharded, UnreplicateComparesBitsAndNotValues) {
  const auto pair = [](const torch::Tensor& a, const torch::Tensor& b) { return Sharded<torch::Tensor>({a, b}); };
  const torch::Tensor nan = torch::full({2}, NAN);
  EXPECT_NO_THROW(pair(nan, nan.clone()).unreplicate());
  EXPECT_THROW(pair(torch::zeros({2}), -torch::zeros({2})).unreplicate(), InvalidArgument);
  const torch::Tensor even = torch::arange(6).reshape({2, 3});
  EXPECT_NO_THROW(pair(even, even.t().contiguous().t()).unreplicate());
  EXPECT_NO_THROW(pair(torch::zeros({0, 3}), torch::zeros({0, 3})).unreplicate());
  EXPECT_THAT([&] { pair(torch::zeros({2}), torch::zeros({3})).unreplicate(); },
              ThrowsMessage<ShapeError>(AllOf(HasSubstr("[2]"), HasSubstr("[3]"), HasSubstr("are no replicas"))));
  EXPECT_THAT(
      [&] {
        (Sharded<std::vector<torch::Tensor>>({{even}, {even, even}}).unreplicate());
      },
      ThrowsMessage<TreeError>(HasSubstr("one has 1 elements, another has 2")));
}

TEST(Sharded, StackOfNoneChecksNumbersToo) {
  const Sharded<std::pair<torch::Tensor, int>> s({{torch::ones({1}), 3}, {torch::ones({1}), 4}}, Axes{0, none});
  EXPECT_THAT([&] { s.stack(); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("position 0 holds 3"), HasSubstr("argument [1]"))));
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
  s.take_away({.argument = 3, .pmap = std::source_location::current()});
  EXPECT_THAT([&] { s[0]; },
              ThrowsMessage<InvalidArgument>(HasSubstr("passed with std::move as argument 3 of the pmap at "
                                                       "sharded_test.cpp:")));
}

TEST(Sharded, OfBoolsRefersToItsOwnValues) {
  const Sharded<bool> s({true, false});
  const bool& first = s[0];
  const bool& second = s[1];
  EXPECT_NE(&first, &second);
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
  const Sharded<bool> same = replicate(true);
  EXPECT_EQ(&same.unreplicate(), &same[0]);
  EXPECT_TRUE(same.stack());
  EXPECT_FALSE(std::get<1>(unzip(Sharded<std::pair<int, bool>>({{1, true}, {2, false}})))[1]);
}

TEST(Sharded, HoldsUndefinedTensorsAsWhatTheyAre) {
  const Sharded<Params> s({{torch::ones({2}), {}}, {torch::ones({2}), {}}});
  EXPECT_FALSE(s.stack().b.defined());
  EXPECT_EQ(s.stack().w.sizes(), torch::IntArrayRef({2, 2}));
  EXPECT_FALSE(s.unreplicate().b.defined());
  const Sharded<Params> other({{torch::ones({2}), {}}, {torch::ones({2}), torch::ones({1})}});
  EXPECT_THAT([&] { other.unreplicate(); },
              ThrowsMessage<ShapeError>(AllOf(HasSubstr("an undefined tensor"), HasSubstr("argument b"))));
}

TEST(Sharded, ShowsNumbersThatDifferWithEnoughDigits) {
  const Sharded<double> close({0.1, std::nextafter(0.1, 1.0)});
  EXPECT_THAT([&] { close.unreplicate(); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("position 0 holds 0.10000000000000001 and position 1 holds 0.10000000000000002")));
  EXPECT_THROW(Sharded<float>({0.0F, -0.0F}).unreplicate(), InvalidArgument);
  EXPECT_NO_THROW(Sharded<double>({NAN, NAN}).unreplicate());
  // Its padding is no part of a number.
  std::vector<long double> padded(2);
  std::memset(padded.data(), 0xff, sizeof(long double));
  padded[0] = padded[1] = 1.5L;
  EXPECT_NO_THROW(Sharded<long double>(padded).unreplicate());
  EXPECT_THROW(Sharded<long double>({1.5L, std::nextafter(1.5L, 2.0L)}).unreplicate(), InvalidArgument);
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

}  // namespace sharded_test
}  // namespace brigade
