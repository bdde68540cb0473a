// Writes a run's checkpoints into one folder, on a thread of its own.
//
//   guard::Checkpointer checkpoints({.folder = "run", .keep_last = 3});
//   ...
//   checkpoints.save({.step = step, .model = {{"w", w}}, .state = {{"epoch", epoch}}});   // goes on while it is written
//   checkpoints.finish();
//
// At every moment the newest checkpoint on the disk, or the one before it, is whole: whatever fails, and if the power does.
#pragma once

#include <cstdint>
#include <memory>

#include "brigade/guard/checkpoint.h"
#include "brigade/guard/options.h"

namespace brigade::guard {

class Checkpointer {
 public:
  // Takes the folder for itself until its end, and removes what an earlier run left unfinished. Throws InvalidArgument for options
  // that cannot be, DataError when the folder cannot be used, or another Checkpointer has it.
  explicit Checkpointer(CheckpointerOptions options);
  ~Checkpointer();  // waits for the write under way; what went wrong is logged as an error
  Checkpointer(Checkpointer&&) noexcept;
  Checkpointer& operator=(Checkpointer&&) noexcept;

  // Copies the tensors, and returns while they are written; first waits for the write before this one. Throws what went wrong
  // with that one, by options.on_failure; InvalidArgument for a step before that of a checkpoint that is there. A checkpoint of
  // the same step is replaced.
  void save(const Checkpoint& checkpoint);

  // The same of tensors that nobody will change: they are not copied.
  void save(Checkpoint&& checkpoint);

  // Waits until everything is on the disk. Throws what went wrong since it was last said, by options.on_failure.
  void finish();

  // Checkpoints that were not written, of those waited for.
  std::int64_t failures() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace brigade::guard
