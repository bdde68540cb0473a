// Reductions among devices whose group reduces fewer dtypes than our own kernels, as groups of other libraries do.
#include <gtest/gtest.h>

#include <functional>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace carrier_test {

using lax::detail::Invocation;
using lax::detail::Tensors;

// A group that reduces int32, int64, float32 and float64 only.
class FewDtypes : public comm::Group {
 public:
  explicit FewDtypes(comm::Group& whole) : whole_(whole) {
    for (const auto dtype : {comm::DType::kInt32, comm::DType::kInt64, comm::DType::kFloat32, comm::DType::kFloat64}) {
      capabilities_.reductions[static_cast<std::size_t>(dtype)] = whole.capabilities().of(dtype);
    }
  }

  int rank() const noexcept override { return whole_.rank(); }
  int size() const noexcept override { return whole_.size(); }
  const comm::Capabilities& capabilities() const noexcept override { return capabilities_; }

  void run(const comm::Call& call, const comm::CallOptions& options) override {
    const bool reduces =
        call.operation == comm::Operation::kAllReduce || call.operation == comm::Operation::kReduceScatter;
    for (const comm::Piece& piece : call.pieces) {
      EXPECT_TRUE(!reduces || capabilities_.takes(call.reduction, piece.dtype)) << name_of(piece.dtype);
    }
    whole_.run(call, options);
  }

  comm::Group& among(std::span<const int> ranks) override { return whole_.among(ranks); }
  comm::Statistics statistics() const noexcept override { return whole_.statistics(); }
  void reset_statistics() noexcept override { whole_.reset_statistics(); }

 private:
  std::uint64_t begin(const comm::Call& call, const comm::CallOptions& options) override {
    run(call, options);
    return 0;
  }
  void finish(std::uint64_t) override {}
  bool try_finish(std::uint64_t) override { return true; }
  void abandon(std::uint64_t) noexcept override {}

  comm::Group& whole_;
  comm::Capabilities capabilities_;
};

// What `collective` gives of temporaries like `leaves`, over the axis or over `few` in its place.
template <class Collective>
Tensors result_of(const Collective& collective, const Tensors& leaves, comm::Group* few = nullptr) {
  Invocation call = lax::detail::enter("psum", "i", {}, std::source_location::current());
  if (few != nullptr) call.place.members = few;
  Tensors temporaries;
  for (const torch::Tensor& leaf : leaves) temporaries.push_back(leaf.clone());
  return collective(call, std::move(temporaries));
}

template <class Collective>
void expect_same_bits_with_few_dtypes(const std::vector<torch::ScalarType>& types, const Collective& collective) {
  Tensors all;
  for (const auto type : types) {
    all.push_back(c10::isComplexType(type) ? torch::randn({5, 5, 3}, type)
                                           : torch::randint(0, 120, {5, 5, 3}).to(type));
  }
  pmap(
      [&](Tensors own) {
        const Tensors expected = result_of(collective, own);
        FewDtypes few(find_axis("i", std::source_location::current()).group());
        const Tensors got = result_of(collective, own, &few);
        for (std::size_t k = 0; k < types.size(); ++k) {
          EXPECT_EQ(got[k].scalar_type(), expected[k].scalar_type()) << types[k];
          EXPECT_TRUE(torch::equal(got[k], expected[k])) << types[k];
        }
      },
      {.axis_name = "i"})(all);
}

const std::vector<torch::ScalarType> kReal = {torch::kBool,  torch::kByte,  torch::kChar, torch::kShort,
                                              torch::kInt,   torch::kLong,  torch::kHalf, torch::kBFloat16,
                                              torch::kFloat, torch::kDouble};
const std::vector<torch::ScalarType> kComplex = {torch::kComplexFloat, torch::kComplexDouble};

TEST(FewDtypes, GiveTheSumsAndMeansOfAll) {
  std::vector<torch::ScalarType> types = kReal;
  types.insert(types.end(), kComplex.begin(), kComplex.end());
  expect_same_bits_with_few_dtypes(types, lax::detail::psum);
  expect_same_bits_with_few_dtypes(
      types, [](const Invocation& call, Tensors tensors) { return lax::detail::pmean(call, std::move(tensors), {}); });
  expect_same_bits_with_few_dtypes(
      {torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kComplexDouble},
      [](const Invocation& call, Tensors tensors) { return lax::detail::pmean(call, std::move(tensors), {}); });
  expect_same_bits_with_few_dtypes(types, [](const Invocation& call, const Tensors& tensors) {
    return lax::detail::psum_scatter(call, tensors, {.dim = 0});
  });
}

TEST(FewDtypes, GiveTheExtremesOfAll) {
  for (const auto collective : {lax::detail::pmax, lax::detail::pmin, lax::detail::pargmax, lax::detail::pargmin}) {
    expect_same_bits_with_few_dtypes(kReal, collective);
  }
}

TEST(FewDtypes, LeaveComplexTemporariesInTheirMemory) {
  pmap(
      [](torch::Tensor t) {
        FewDtypes few(find_axis("i", std::source_location::current()).group());
        const void* memory = nullptr;
        const auto sum = [&](const Invocation& call, Tensors tensors) {
          memory = tensors[0].data_ptr();
          return lax::detail::psum(call, std::move(tensors));
        };
        EXPECT_EQ(result_of(sum, {t}, &few)[0].data_ptr(), memory);
      },
      {.axis_name = "i"})(torch::ones({3, 100}, torch::kComplexFloat));
}

}  // namespace carrier_test
}  // namespace brigade
