// Random programs of collectives against a plain loop over devices, bit for bit.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "plain_loop.h"
#include "program.h"
#include "support/nine_devices.h"

namespace brigade::programs {
namespace programs_test {

// Ours: what the device that calls it gets.
Tensors call(const Step& step, Tensors tree) {
  const auto site = std::source_location::current();
  const AxisNames axis(step.axis);
  const auto device = static_cast<std::size_t>(find_axis(axis, site).position);
  const lax::GroupOptions grouped{step.groups};
  switch (step.op) {
    case Op::kPsum:
      return step.moved ? lax::psum(std::move(tree), axis, grouped) : lax::psum(tree, axis, grouped);
    case Op::kPmean:
      return step.moved ? lax::pmean(std::move(tree), axis, {.axis_index_groups = step.groups})
                        : lax::pmean(tree, axis, {.axis_index_groups = step.groups});
    case Op::kWeightedPmean:
      return lax::pmean(tree, axis, {.weight = step.weights[device], .axis_index_groups = step.groups});
    case Op::kPmax:
      return step.moved ? lax::pmax(std::move(tree), axis, grouped) : lax::pmax(tree, axis, grouped);
    case Op::kPmin:
      return lax::pmin(tree, axis, grouped);
    case Op::kPargmax:
      return lax::pargmax(tree, axis, grouped);
    case Op::kPargmin:
      return lax::pargmin(tree, axis, grouped);
    case Op::kAllGather:
      return lax::all_gather(tree, axis, {step.dim, step.tiled, step.groups});
    case Op::kPsumScatter:
      return lax::psum_scatter(tree, axis, {step.dim, step.tiled, step.groups});
    case Op::kAllToAll:
      return lax::all_to_all(tree, axis, {step.dim, step.concat, step.tiled, step.groups});
    case Op::kPswapaxes:
      return lax::pswapaxes(tree, axis, step.dim, grouped);
    case Op::kPpermute:
      return lax::ppermute(tree, axis, step.pairs, grouped);
    case Op::kPshuffle:
      return lax::pshuffle(tree, axis, step.perm, grouped);
    case Op::kPbroadcast:
      return lax::pbroadcast(tree, axis, step.source, grouped);
  }
  return {};
}

// Draws from one seed, so that a failure is told by a few numbers.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : bits_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution(low, high)(bits_); }
  bool one_in(int count) { return between(1, count) == 1; }

  std::vector<int> shuffled(int count) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), bits_);
    return order;
  }

 private:
  std::mt19937 bits_;
};

Grid draw_grid(Draw& draw) {
  switch (draw.between(0, 3)) {
    case 0:
      return {{{"a", draw.between(1, 3)}, {"b", draw.between(1, 3)}}};
    case 1:
      return {{{"a", 2}, {"b", draw.between(1, 2)}, {"c", 2}}};
    default:
      return {{{"a", draw.between(1, 9)}}};
  }
}

std::vector<std::string> draw_names(Draw& draw, const Grid& grid) {
  std::vector<std::string> names;
  for (const int i : draw.shuffled(static_cast<int>(grid.axes.size())))
    names.push_back(grid.axes[static_cast<std::size_t>(i)].name);
  names.resize(static_cast<std::size_t>(draw.between(1, static_cast<int>(names.size()))));
  return names;
}

// A partition of the ranks, into groups of one size if need be; or none.
lax::AxisIndexGroups draw_groups(Draw& draw, int ranks, bool equal) {
  if (draw.one_in(2)) return {};
  const std::vector<int> order = draw.shuffled(ranks);
  int size = draw.between(1, ranks);
  while (equal && ranks % size != 0) --size;
  lax::AxisIndexGroups groups;
  for (const int rank : order) {
    if (groups.empty() || static_cast<int>(groups.back().size()) == size) {
      groups.emplace_back();
      if (!equal) size = draw.between(1, ranks);
    }
    groups.back().push_back(rank);
  }
  return groups;
}

torch::Tensor draw_tensor(Draw& draw, const std::vector<std::int64_t>& shape, torch::ScalarType type, bool with_nan) {
  torch::Tensor tensor;
  if (type == torch::kBool) {
    tensor = torch::randint(0, 2, shape).to(type);
  } else if (plain::is_integral(type)) {
    tensor = torch::randint(type == torch::kByte ? 0 : -100, 100, shape).to(type);
  } else {
    tensor = (torch::randn(shape, c10::isComplexType(type) ? type : torch::kDouble) * 10).to(type);
  }
  if (with_nan && c10::isFloatingType(type) && tensor.numel() > 0) tensor.view(-1)[0] = std::nan("");
  // Now and then with other strides.
  return tensor.dim() >= 2 && draw.one_in(4) ? tensor.transpose(0, 1).contiguous().transpose(0, 1) : tensor;
}

const std::vector<torch::ScalarType> kTypes = {
    torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kBool,         torch::kByte,
    torch::kChar,  torch::kShort,  torch::kInt,  torch::kLong,     torch::kComplexFloat, torch::kComplexDouble};

Step draw_step(Draw& draw, const Grid& grid) {
  Step step{};
  step.op = static_cast<Op>(draw.between(0, kOps - 1));
  step.axis = draw_names(draw, grid);
  step.tiled = draw.one_in(2);
  step.moved = draw.one_in(2);
  const bool by_rank = step.op >= Op::kAllGather;  // the arguments hold for every group, so all have one size
  step.groups = draw_groups(draw, grid.size(step.axis), by_rank);
  const int count = step.groups.empty() ? grid.size(step.axis) : static_cast<int>(step.groups[0].size());

  const bool splits = step.op == Op::kPsumScatter || step.op == Op::kAllToAll || step.op == Op::kPswapaxes;
  const int rank = draw.between(splits || step.op == Op::kAllGather ? 1 : 0, 3);
  if (rank > 0) {
    step.dim = draw.between(-rank, rank - 1);
    step.concat = draw.between(-rank, rank - 1);
  }
  step.source = draw.between(0, count - 1);
  step.perm = draw.shuffled(count);
  const std::vector<int> destinations = draw.shuffled(count);
  for (int i = 0; i < draw.between(0, count); ++i) {
    step.pairs.emplace_back(step.perm[static_cast<std::size_t>(i)], destinations[static_cast<std::size_t>(i)]);
  }
  // Now and then enough for the way of large messages.
  const int longest = draw.one_in(10) ? 40 : 5;
  const int leaves = draw.between(1, 3);
  step.inputs.resize(static_cast<std::size_t>(grid.devices()));
  for (int k = 0; k < leaves; ++k) {
    std::vector<std::int64_t> shape;
    for (int i = 0; i < rank; ++i) shape.push_back(draw.between(0, longest));
    if (splits) {
      const bool tiled = step.tiled && step.op != Op::kPswapaxes;
      shape[static_cast<std::size_t>(step.dim < 0 ? step.dim + rank : step.dim)] =
          tiled ? count * draw.between(0, 3) : count;
    }
    torch::ScalarType type = kTypes[static_cast<std::size_t>(draw.between(0, static_cast<int>(kTypes.size()) - 1))];
    if (is_order(step.op) && c10::isComplexType(type)) type = torch::kDouble;
    for (Tensors& tree : step.inputs) {
      tree.push_back(draw_tensor(draw, shape, type, /*with_nan=*/is_order(step.op) && draw.one_in(10)));
    }
  }
  for (int d = 0; d < grid.devices(); ++d) step.weights.push_back(draw.between(1, 9) / 2.0);
  return step;
}

// Of a NaN only that it is one. Equal values are enough for extremes, as zeros of both signs are equal.
bool agree(const torch::Tensor& ours, const torch::Tensor& right, Op op) {
  if (ours.scalar_type() != right.scalar_type() || ours.sizes() != right.sizes()) return false;
  const torch::Tensor a = ours.contiguous(), b = right.contiguous();
  if (is_order(op)) return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))).all().item<bool>();
  return a.numel() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

std::string described(const Step& step) {
  return "op " + std::to_string(static_cast<int>(step.op)) + ", tiled " + std::to_string(step.tiled) + ", dim " +
         std::to_string(step.dim) + ", concat " + std::to_string(step.concat) + ", groups " +
         std::to_string(step.groups.size()) + ", axes " + std::to_string(step.axis.size());
}

TEST(Programs, OfRandomCollectivesAgreeWithAPlainLoopBitForBit) {
  const bool all_agree = rc::check([] {
    const auto seed = *rc::gen::inRange<std::uint32_t>(0, 1U << 30);
    const int steps = *rc::gen::inRange(1, 13);
    Draw draw(seed);
    torch::manual_seed(seed);
    const Grid grid = draw_grid(draw);
    std::vector<Step> program;
    for (int k = 0; k < steps; ++k) program.push_back(draw_step(draw, grid));

    const auto f = pmap(
        [&](torch::Tensor) {
          const AxisPlace place = find_axis(grid.axes[0].name, std::source_location::current());
          const auto device = static_cast<std::size_t>(place.position);
          std::vector<Tensors> results;
          for (const Step& step : program) {
            Tensors tree = step.inputs[device];
            if (step.moved) {
              for (torch::Tensor& leaf : tree) leaf = leaf.clone();
            }
            results.push_back(call(step, std::move(tree)));
          }
          return results;
        },
        {.mesh = Mesh(grid.axes)});
    const auto out = f(torch::zeros({grid.devices()}));
    for (std::size_t k = 0; k < program.size(); ++k) {
      const std::vector<Tensors> right = expected(grid, program[k]);
      for (int d = 0; d < grid.devices(); ++d) {
        const Tensors& own = right[static_cast<std::size_t>(d)];
        for (std::size_t leaf = 0; leaf < own.size(); ++leaf) {
          const torch::Tensor& want = own[leaf];
          if (!agree(out[d][k][leaf], want, program[k].op)) {
            RC_LOG() << described(program[k]) << "\nours " << out[d][k][leaf] << "\nplain " << want;
            RC_FAIL("a collective differs from the plain loop");
          }
        }
      }
    }
  });
  EXPECT_TRUE(all_agree);
}

}  // namespace programs_test
}  // namespace brigade::programs
