// Hands out a dataset step by step, cut into shards, prepared ahead of time by a thread of its own.
//
//   data::Loader loader(fashion.train, {.global_batch = 128, .shards = 4, .epochs = 3});
//   for (data::Batch& batch : loader) step(batch.shards);
//
//   data::Loader evaluation(fashion.test, {.global_batch = 1000, .shards = 4, .order = data::Order::kSequential});
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "brigade/data/dataset.h"
#include "brigade/data/sampler.h"

namespace brigade::data {

// What one device gets of a step, or one logical shard. Its tensors are its own: contiguous and aligned to 64 bytes. A
// shard that the last rows did not reach holds zero rows.
struct Shard {
  torch::Tensor x = {};  // [rows, ...], of the dataset's dtype
  torch::Tensor y = {};  // [rows, ...], int64

  std::int64_t rows() const { return x.defined() ? x.size(0) : 0; }
};

struct Batch {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // within the epoch
  std::int64_t rows = 0;  // of all shards together: global_batch, or what the epoch's last step has left
  std::vector<Shard> shards = {};
};

struct LoaderOptions {
  std::int64_t global_batch = 0;  // rows of one step, a multiple of `shards`
  std::int64_t shards = 1;        // shard i gets rows [i * b, (i + 1) * b) of the step, b = global_batch / shards
  std::int64_t epochs = 1;        // the run ends before this epoch, wherever it starts
  std::int64_t seed = 0;          // of the order
  Order order = Order::kShuffled;
  Position start = {};  // first step to hand out; a run that stopped continues from its position()
  int prefetch = 2;     // batches that may lie ready; 0 prepares each when it is asked for, without a thread
  // Runs on each batch where it is prepared, and must not depend on earlier ones.
  std::function<void(Batch&)> transform = {};
};

class Loader {
 public:
  // Throws InvalidArgument for options that do not fit together, ShapeError for a dataset whose x and y do not.
  Loader(Dataset dataset, LoaderOptions options);
  ~Loader();  // does not wait for batches that nobody will take
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  // The next batch, or nothing after the last. Throws what preparing it threw; from then on every call does.
  std::optional<Batch> next();

  // Of the batch that next() gives next; {epochs, 0} at the end.
  Position position() const;

  // Continues from `position`. Throws InvalidArgument when the run has no such step.
  void seek(Position position);

  std::int64_t steps_per_epoch() const;

  // One pass over what is left; a loader is handed out once, so a second loop starts where the first one stopped.
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(Loader& loader) : loader_(&loader), batch_(loader.next()) {}

    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

   private:
    Loader* loader_ = nullptr;
    mutable std::optional<Batch> batch_;  // mutable, since a batch is the caller's to change or move from
  };

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace brigade::data
