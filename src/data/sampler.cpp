#include "brigade/data/sampler.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/random/key.h"
#include "brigade/random/permutation.h"

namespace brigade::data {

RowRange shard_range(std::int64_t rows, std::int64_t rows_per_shard, std::int64_t shard) {
  const std::int64_t begin = std::min(rows, shard * rows_per_shard);
  return {.begin = begin, .end = std::min(rows, begin + rows_per_shard)};
}

Sampler::Sampler(SamplerOptions options) : options_(options) {
  if (options_.rows < 1) throw InvalidArgument("The dataset has no rows: there is nothing to hand out.");
  if (options_.global_batch < 1) {
    throw InvalidArgument(
        fmt::format("global_batch is {}: give the number of rows of one step, 1 or more.", options_.global_batch));
  }
}

std::int64_t Sampler::steps_per_epoch() const { return (options_.rows - 1) / options_.global_batch + 1; }

Position Sampler::after(Position position) const {
  if (position.step + 1 < steps_per_epoch()) return {.epoch = position.epoch, .step = position.step + 1};
  return {.epoch = position.epoch + 1, .step = 0};
}

std::span<const std::int64_t> Sampler::rows_of(Position position) {
  if (position.epoch < 0 || position.step < 0 || position.step >= steps_per_epoch()) {
    throw InvalidArgument(
        fmt::format("There is no step {} of epoch {}: an epoch has {} steps of {} rows, counted from 0.", position.step,
                    position.epoch, steps_per_epoch(), options_.global_batch));
  }
  if (!order_.defined() || (options_.order == Order::kShuffled && cached_epoch_ != position.epoch)) {
    order_ = options_.order == Order::kShuffled
                 ? random::permutation(random::fold_in(random::key(options_.seed), position.epoch), options_.rows)
                 : at::arange(options_.rows, at::kLong);
    cached_epoch_ = position.epoch;
  }
  const std::int64_t begin = position.step * options_.global_batch;
  const std::int64_t count = std::min(options_.global_batch, options_.rows - begin);
  return {order_.data_ptr<std::int64_t>() + begin, static_cast<std::size_t>(count)};
}

}  // namespace brigade::data
