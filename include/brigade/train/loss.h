// What a loss function says of the rows that it was given.
//
//   return torch::cross_entropy_loss(net->forward(b.x), b.y);                    // a tensor: the mean over the rows
//   return training::mean_over(loss, tokens);                                       // the mean over `tokens` things
//   return training::sum_over(losses.sum(), tokens).with("accuracy", right, rows);  // a sum, and what is to be reported
//
// The step's loss and gradient are those of the sum over all leaves divided by the sum of all counts, so uneven leaves weigh
// what they hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::training {

// A number to be reported besides the loss: the sum over all leaves of `sum`, divided by that of `count`.
struct Metric {
  std::string name;
  double sum = 0;
  double count = 0;
};

struct Loss {
  enum class Of { kMean, kSum };

  at::Tensor value = {};  // one element
  Of of = Of::kMean;
  std::optional<double> count =
      {};  // things it was taken over, such as samples or tokens; the rows if nobody says. 0 is allowed
  std::vector<Metric> metrics = {};

  Loss() = default;
  Loss(at::Tensor mean) : value(std::move(mean)) {}  // over the rows
  Loss(at::Tensor one, Of kind, double things) : value(std::move(one)), of(kind), count(things) {}

  // The same loss with one more metric.
  Loss with(std::string name, double sum, double things) && {
    metrics.push_back({.name = std::move(name), .sum = sum, .count = things});
    return std::move(*this);
  }
};

inline Loss mean_over(at::Tensor mean, double count) { return {std::move(mean), Loss::Of::kMean, count}; }
inline Loss sum_over(at::Tensor sum, double count) { return {std::move(sum), Loss::Of::kSum, count}; }

}  // namespace brigade::training
