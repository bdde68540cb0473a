// When a run of `brigade train` saves, and where it goes on from.
#pragma once

#include <cstdint>
#include <optional>

#include "brigade/guard/checkpointer.h"
#include "train_options.h"

namespace brigade::cli {

class Checkpoints {
 public:
  // Does nothing without a folder. Throws InvalidArgument for options that need one, and DataError when the folder holds a run
  // and the options do not say that it goes on.
  Checkpoints(const CheckpointOptions& options, std::int64_t steps_per_epoch);

  // What the run goes on from; nothing when it begins.
  std::optional<guard::Checkpoint> newest() const;

  bool is_due(std::int64_t steps) const { return writer_ && steps % save_every_ == 0; }
  bool is_on() const { return writer_.has_value(); }

  // Returns while it is written. `accuracy` of the test data, where it is known, decides which is the best.
  void save(guard::Checkpoint checkpoint, std::optional<double> accuracy = {});

  // Waits until all is on the disk.
  void finish();

 private:
  const CheckpointOptions& options_;
  std::int64_t save_every_;
  std::optional<guard::Checkpointer> writer_;
};

}  // namespace brigade::cli
