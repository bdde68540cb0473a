// A small model as a tree, and steps of it by a plain loop.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <string>
#include <vector>

#include "brigade/random/distributions.h"
#include "brigade/train/data_parallel.h"
#include "support/nine_devices.h"
#include "support/tree_sum.h"

namespace brigade::training::testing {

// Two layers; more than one block of 4,096 elements, and a tensor shorter than a cache line.
struct Mlp {
  at::Tensor w1, b1, w2, b2;

  at::Tensor operator()(const at::Tensor& x) const { return at::addmm(b2, at::relu(at::addmm(b1, x, w1)), w2); }
};

inline Mlp make_mlp(std::int64_t inputs = 70, std::int64_t hidden = 65, std::int64_t outputs = 5) {
  const auto keys = random::split(random::key(7), 2);
  return {.w1 = random::normal(keys[0], {inputs, hidden}) * 0.1,
          .b1 = at::zeros({hidden}),
          .w2 = random::normal(keys[1], {hidden, outputs}) * 0.1,
          .b2 = at::zeros({outputs})};
}

struct Rows {
  at::Tensor x, y;
};

inline Rows make_rows(std::int64_t rows, std::int64_t seed = 0, std::int64_t inputs = 70, std::int64_t classes = 5) {
  const random::Key key = random::fold_in(random::key(11), seed);
  return {.x = random::normal(key, {rows, inputs}),
          .y = random::randint(random::fold_in(key, 1), {rows}, 0, classes).to(at::kLong)};
}

inline at::Tensor mean_loss(const Mlp& model, const Rows& rows) {
  return at::cross_entropy_loss(model(rows.x), rows.y);
}

// Gradients of the sums over the rows of each leaf, by autograd alone, added up in the documented tree.
inline std::vector<at::Tensor> plain_sums(const Mlp& model, const Rows& rows, std::int64_t rows_per_leaf) {
  std::vector<std::vector<at::Tensor>> leaves(4);
  for (std::int64_t begin = 0; begin < rows.x.size(0); begin += rows_per_leaf) {
    const std::int64_t count = std::min(rows_per_leaf, rows.x.size(0) - begin);
    Mlp own = model;
    tree::for_each([](const tree::Path&, at::Tensor& t) { t = t.detach().clone().requires_grad_(); }, own);
    const Rows part = {rows.x.narrow(0, begin, count).clone(), rows.y.narrow(0, begin, count).clone()};
    const at::Tensor loss = mean_loss(own, part);
    const auto gradients = torch::autograd::grad({loss}, tree::flatten(own), {at::full_like(loss, count)});
    for (std::size_t i = 0; i < gradients.size(); ++i) leaves[i].push_back(gradients[i]);
  }
  std::vector<at::Tensor> sums;
  for (const auto& column : leaves) sums.push_back(tree_sum(column));
  return sums;
}

inline std::vector<Device> first_devices(int count) { return {devices().begin(), devices().begin() + count}; }

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor one = a.detach().contiguous(), other = b.detach().contiguous();
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type() &&
         std::memcmp(one.data_ptr(), other.data_ptr(), one.nbytes()) == 0;
}

inline void expect_same_bits(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other,
                             const std::string& what = {}) {
  ASSERT_EQ(one.size(), other.size()) << what;
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], other[i])) << what << ", tensor " << i;
}

inline std::vector<at::Tensor> values_of(const Mlp& model) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : tree::flatten(model)) values.push_back(tensor.detach().clone());
  return values;
}

}  // namespace brigade::training::testing
