#include "brigade/lax/gradient_reduction.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "linear_node.h"
#include "reducer.h"
#include "transport.h"

namespace brigade::lax {
namespace {

Reduction reduce(Reduction::Combine combine, const AxisNames& axis, Site site) {
  Reduction how{.combine = combine, .site = site};
  for (const std::string_view name : axis) how.axes.emplace_back(name);
  return how;
}

}  // namespace

Reduction reduce_mean(const AxisNames& axis, Site site) { return reduce(Reduction::Combine::kMean, axis, site); }

Reduction reduce_sum(const AxisNames& axis, Site site) { return reduce(Reduction::Combine::kSum, axis, site); }

namespace detail {

struct GradientReduction::Bucket {
  std::size_t first = 0, end = 0;  // which tensors, in the order in which they travel
  std::size_t missing = 0;
  std::string tag = {};
  std::optional<Reducer> reducer = {};        // once started
  std::optional<comm::Pending> pending = {};  // gone before what it reads and writes
};

GradientReduction::GradientReduction(const Reduction& how, Tensors variables,
                                     std::function<std::string(std::size_t)> path_of)
    : call_{.name = how.combine == Reduction::Combine::kMean ? "reduce_mean" : "reduce_sum",
            .place = find_axis(how.axes, how.site),
            .site = how.site},
      reduction_{.op = comm::ReduceOp::kSum,
                 .divisor = how.combine == Reduction::Combine::kMean ? static_cast<double>(call_.size()) : 1.0},
      variables_(std::move(variables)),
      path_of_(std::move(path_of)),
      waiting_(1 + variables_.size()),
      collectives_before_(recorded_collectives()) {
  std::size_t bytes = kBucketBytes;
  for (std::size_t index = 0; index < waiting_.size(); ++index) {
    if (bytes >= kBucketBytes) {
      buckets_.push_back(std::make_unique<Bucket>());
      buckets_.back()->first = buckets_.back()->end = index;
      buckets_.back()->tag = fmt::format("{}, bucket {}", call_.name, buckets_.size() - 1);
      bytes = 0;
    }
    ++buckets_.back()->end;
    ++buckets_.back()->missing;
    if (index > 0) bytes += variables_[variables_.size() - index].nbytes();
  }
}

GradientReduction::~GradientReduction() = default;

void GradientReduction::set_loss(const at::Tensor& loss) {
  overlapped_ = recorded_collectives() == collectives_before_;
  put(0, loss.detach());
}

void GradientReduction::arrived(std::size_t number, at::Tensor gradient) { put(index_of(number), std::move(gradient)); }

void GradientReduction::put(std::size_t index, at::Tensor value) {
  waiting_[index] = std::move(value);
  const auto reaches = [index](const auto& bucket) { return index < bucket->end; };
  --(*std::find_if(buckets_.begin(), buckets_.end(), reaches))->missing;
  if (overlapped_) start_complete_buckets();
}

void GradientReduction::start_complete_buckets() {
  while (started_ < buckets_.size() && buckets_[started_]->missing == 0) start(*buckets_[started_++]);
}

void GradientReduction::start(Bucket& bucket) {
  Reducer& reducer = bucket.reducer.emplace(call_, reduction_, bucket.end - bucket.first);
  for (std::size_t index = bucket.first; index < bucket.end; ++index)
    reducer.add(waiting_[index], waiting_[index].scalar_type());
  bucket.pending.emplace(reducer.start(comm::Operation::kAllReduce, bucket.tag));
  for (std::size_t index = bucket.first; index < bucket.end; ++index) waiting_[index] = at::Tensor();
}

void GradientReduction::wait(Bucket& bucket) {
  try {
    bucket.pending->wait();
  } catch (const CollectiveMismatch& error) {
    if (!error.piece()) throw;
    const std::size_t index = bucket.first + *error.piece();
    throw_at(error, index == 0 ? "the loss" : path_of_(variables_.size() - index));
  }
}

std::pair<at::Tensor, Tensors> GradientReduction::finish() {
  overlapped_ = false;
  // What is in buckets that have started has arrived, and so has the loss.
  std::size_t index =
      started_ < buckets_.size() ? std::max<std::size_t>(buckets_[started_]->first, 1) : waiting_.size();
  for (; index < waiting_.size(); ++index) {
    const at::Tensor& like = variables_[variables_.size() - index];
    if (!waiting_[index].defined()) put(index, at::zeros(like.sizes(), like.options().requires_grad(false)));
  }
  start_complete_buckets();

  Tensors reduced;
  reduced.reserve(waiting_.size());
  for (const auto& bucket : buckets_) {
    wait(*bucket);
    for (at::Tensor& result : bucket->reducer->results()) reduced.push_back(std::move(result));
  }
  at::Tensor loss = std::move(reduced.front());
  reduced.erase(reduced.begin());
  std::reverse(reduced.begin(), reduced.end());
  return {std::move(loss), std::move(reduced)};
}

}  // namespace detail
}  // namespace brigade::lax
