#include "checkpoints.h"

#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::cli {
namespace {

constexpr const char* kMetric = "test_accuracy";

}  // namespace

Checkpoints::Checkpoints(const CheckpointOptions& options, std::int64_t steps_per_epoch)
    : options_(options), save_every_(options.save_every.value_or(steps_per_epoch)) {
  if (options.folder.empty()) {
    if (options.resume || options.save_every || options.keep) {
      throw InvalidArgument(
          fmt::format("{} needs --checkpoint-dir FOLDER, where checkpoints lie", options.resume       ? "--resume"
                                                                                 : options.save_every ? "--save-every"
                                                                                                      : "--keep"));
    }
    return;
  }
  writer_.emplace(
      guard::CheckpointerOptions{.folder = options.folder,
                                 .keep_last = options.keep.value_or(guard::CheckpointerOptions().keep_last),
                                 .keep_best = guard::Best{.metric = kMetric, .goal = guard::Goal::kLargest}});
  if (options.resume) return;
  if (const auto found = guard::newest(options.folder)) {
    throw DataError(
        fmt::format("{} holds checkpoints of a run, up to step {}. Go on with it by --resume, or name another "
                    "folder",
                    options.folder, found->step));
  }
}

std::optional<guard::Checkpoint> Checkpoints::newest() const {
  return writer_ && options_.resume ? guard::newest(options_.folder) : std::nullopt;
}

void Checkpoints::save(guard::Checkpoint checkpoint, std::optional<double> accuracy) {
  if (accuracy) checkpoint.state["metrics"][kMetric] = *accuracy;
  writer_->save(std::move(checkpoint));
}

void Checkpoints::finish() {
  if (writer_) writer_->finish();
}

}  // namespace brigade::cli
