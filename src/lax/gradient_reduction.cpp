#include "brigade/lax/gradient_reduction.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "linear_node.h"
#include "transport.h"

namespace brigade::lax::detail {

GradientReduction::GradientReduction(const Reduction& how, const Tensors& variables)
    : place_(find_axis(how.axis, how.site)),
      reduction_{.op = comm::ReduceOp::kSum,
                 .divisor = how.combine == Reduction::Combine::kMean ? static_cast<double>(place_.axis->size()) : 1.0},
      site_(how.site),
      collectives_before_(recorded_collectives()),
      variables_(variables),
      tensors_(1 + variables.size()) {
  const char* const name = how.combine == Reduction::Combine::kMean ? "reduce_mean" : "reduce_sum";
  std::size_t bytes = kBucketBytes;  // the loss opens the first bucket
  for (std::size_t index = 0; index < tensors_.size(); ++index) {
    if (bytes >= kBucketBytes) {
      buckets_.push_back({.first = index, .end = index, .tag = fmt::format("{}, bucket {}", name, buckets_.size())});
      bytes = 0;
    }
    ++buckets_.back().end;
    ++buckets_.back().missing;
    if (index > 0) bytes += variables_[variables_.size() - index].nbytes();
  }
}

void GradientReduction::set_loss(const at::Tensor& loss) {
  overlapped_ = recorded_collectives() == collectives_before_;
  // The graph holds the loss, too.
  put(0, loss.detach());
}

void GradientReduction::arrived(std::size_t number, at::Tensor gradient) { put(index_of(number), std::move(gradient)); }

void GradientReduction::put(std::size_t index, at::Tensor value) {
  Travelling& entry = tensors_[index];
  const bool alone = is_ours_alone(value);
  entry.in = plain(value, "value_and_grad", place_, site_);
  if (!entry.in.is_complex()) entry.in = entry.in.to(reduced_as(value.scalar_type()));
  const bool copied = entry.in.data_ptr() != value.data_ptr();
  entry.out = alone || copied ? entry.in : at::empty_like(entry.in);
  entry.original = std::move(value);

  const auto reaches = [index](const Bucket& bucket) { return index < bucket.end; };
  --std::find_if(buckets_.begin(), buckets_.end(), reaches)->missing;
  if (overlapped_) start_complete_buckets();
}

void GradientReduction::start_complete_buckets() {
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_) start(buckets_[started_]);
}

void GradientReduction::start(Bucket& bucket) {
  const auto as_real = [](const at::Tensor& tensor) { return tensor.is_complex() ? at::view_as_real(tensor) : tensor; };
  Tensors views;  // hold the shapes, which start() copies
  std::vector<comm::Piece> pieces;
  views.reserve(bucket.end - bucket.first);
  for (std::size_t index = bucket.first; index < bucket.end; ++index) {
    const Travelling& entry = tensors_[index];
    pieces.push_back(piece(views.emplace_back(as_real(entry.in)), as_real(entry.out), entry.original));
  }
  bucket.pending.emplace(
      place_.group().start({.operation = comm::Operation::kAllReduce, .reduction = reduction_, .pieces = pieces},
                           {.tag = bucket.tag, .site = site_}));
}

std::pair<at::Tensor, Tensors> GradientReduction::finish() {
  for (std::size_t index = 1; index < tensors_.size(); ++index) {
    const at::Tensor& like = variables_[variables_.size() - index];
    if (!tensors_[index].original.defined()) put(index, at::zeros(like.sizes(), like.options().requires_grad(false)));
  }
  start_complete_buckets();
  for (Bucket& bucket : buckets_) bucket.pending->wait();

  const auto take = [&](std::size_t index) {
    Travelling& entry = tensors_[index];
    const at::ScalarType dtype = entry.original.scalar_type();
    return entry.out.scalar_type() == dtype ? std::move(entry.out) : entry.out.to(dtype);
  };
  Tensors gradients;
  gradients.reserve(variables_.size());
  for (std::size_t number = 0; number < variables_.size(); ++number) gradients.push_back(take(index_of(number)));
  return {take(0), std::move(gradients)};
}

}  // namespace brigade::lax::detail
