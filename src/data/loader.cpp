#include "brigade/data/loader.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "brigade/base/error.h"
#include "data/prefetcher.h"

namespace brigade::data {
namespace {

Dataset checked(Dataset dataset) {
  const auto on_cpu = [](const torch::Tensor& t) {
    return t.defined() && t.device().is_cpu() && t.layout() == at::kStrided && t.dim() >= 1;
  };
  if (!on_cpu(dataset.x) || !on_cpu(dataset.y)) {
    throw ShapeError("A dataset's x and y must be dense tensors on the CPU with a leading axis of rows.");
  }
  const at::ScalarType labels = dataset.y.scalar_type();
  if (labels != at::kLong && labels != at::kByte) {
    throw ShapeError(
        fmt::format("A dataset's y must hold labels, as int64 or uint8; it is {}.", c10::toString(labels)));
  }
  if (dataset.y.size(0) != dataset.x.size(0)) {
    throw ShapeError(fmt::format("The dataset has {} rows of x and {} of y: each needs the other.", dataset.x.size(0),
                                 dataset.y.size(0)));
  }
  dataset.x = dataset.x.detach().contiguous();
  dataset.y = dataset.y.contiguous();
  return dataset;
}

LoaderOptions checked(LoaderOptions options) {
  if (options.shards < 1 || options.global_batch % options.shards != 0) {
    throw InvalidArgument(
        fmt::format("global_batch {} cannot be cut into {} equal shards: give a multiple of `shards`, which "
                    "is 1 or more.",
                    options.global_batch, options.shards));
  }
  if (options.epochs < 0) {
    throw InvalidArgument(fmt::format("epochs is {}: give how many there are, 0 or more.", options.epochs));
  }
  if (options.prefetch < 0) {
    throw InvalidArgument(
        fmt::format("prefetch is {}: give how many batches may lie ready, 0 or more.", options.prefetch));
  }
  return options;
}

// Copies whole rows, so the dtype does not matter.
torch::Tensor gather(const torch::Tensor& from, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> sizes = from.sizes().vec();
  sizes[0] = static_cast<std::int64_t>(rows.size());
  torch::Tensor result = at::empty(sizes, from.options());
  const std::size_t row_bytes = from.nbytes() / static_cast<std::size_t>(from.size(0));
  if (result.numel() == 0) return result;
  const auto* source = static_cast<const std::byte*>(from.data_ptr());
  auto* target = static_cast<std::byte*>(result.data_ptr());
  for (const std::int64_t row : rows) {
    std::memcpy(target, source + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    target += row_bytes;
  }
  return result;
}

}  // namespace

class Loader::State {
 public:
  State(Dataset dataset, LoaderOptions options)
      : options_(checked(std::move(options))),
        dataset_(checked(std::move(dataset))),
        sampler_({.rows = dataset_.rows(),
                  .global_batch = options_.global_batch,
                  .seed = options_.seed,
                  .order = options_.order}) {
    seek(options_.start);
  }

  std::optional<Batch> next() {
    std::optional<Batch> batch = prefetcher_ ? prefetcher_->next() : produce();
    if (batch) taken_ = sampler_.after({.epoch = batch->epoch, .step = batch->step});
    return batch;
  }

  void seek(Position position) {
    const bool at_end = position == Position{.epoch = options_.epochs, .step = 0};
    if (!at_end && (position.epoch < 0 || position.epoch >= options_.epochs || position.step < 0 ||
                    position.step >= steps_per_epoch())) {
      throw InvalidArgument(
          fmt::format("The run cannot start at epoch {}, step {}: it has {} epochs of {} steps, both counted "
                      "from 0. Was it begun with other options?",
                      position.epoch, position.step, options_.epochs, steps_per_epoch()));
    }
    prefetcher_.reset();
    taken_ = made_ = position;
    if (options_.prefetch > 0) {
      prefetcher_ = std::make_unique<Prefetcher<Batch>>([this] { return produce(); },
                                                        static_cast<std::size_t>(options_.prefetch));
    }
  }

  Position position() const { return taken_; }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

 private:
  // Runs on the prefetching thread, or in next() when there is none.
  std::optional<Batch> produce() {
    if (made_.epoch >= options_.epochs) return std::nullopt;
    const std::span<const std::int64_t> rows = sampler_.rows_of(made_);
    Batch batch{.epoch = made_.epoch, .step = made_.step, .rows = static_cast<std::int64_t>(rows.size()), .shards = {}};
    batch.shards.reserve(static_cast<std::size_t>(options_.shards));
    for (std::int64_t shard = 0; shard < options_.shards; ++shard) {
      const RowRange range = shard_range(batch.rows, options_.global_batch / options_.shards, shard);
      const auto part = rows.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
      batch.shards.push_back({.x = gather(dataset_.x, part), .y = gather(dataset_.y, part).to(at::kLong)});
    }
    if (options_.transform) options_.transform(batch);
    made_ = sampler_.after(made_);
    return batch;
  }

  const LoaderOptions options_;
  const Dataset dataset_;
  Sampler sampler_;                                // rows_of() by the producer only; the rest of it never changes
  Position made_;                                  // of the batch that is prepared next
  Position taken_;                                 // of the batch that is handed out next
  std::unique_ptr<Prefetcher<Batch>> prefetcher_;  // last: its thread uses all of the above
};

Loader::Loader(Dataset dataset, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(dataset), std::move(options))) {}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

std::optional<Batch> Loader::next() { return state_->next(); }
Position Loader::position() const { return state_->position(); }
void Loader::seek(Position position) { state_->seek(position); }
std::int64_t Loader::steps_per_epoch() const { return state_->steps_per_epoch(); }

}  // namespace brigade::data
