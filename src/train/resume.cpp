#include "brigade/train/resume.h"

#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/guard/checkpointer.h"

namespace brigade::training {

void put_position(const data::Loader& loader, guard::Checkpoint& checkpoint) {
  const data::Position position = loader.position();
  checkpoint.state["loader"] = {
      {"epoch", position.epoch}, {"step", position.step}, {"steps_per_epoch", loader.steps_per_epoch()}};
}

void seek(data::Loader& loader, const guard::Checkpoint& checkpoint) {
  const auto refuse = [&](std::string_view what) {
    throw InvalidArgument(fmt::format("the checkpoint of step {} {}", checkpoint.step, what));
  };
  data::Position position;
  std::int64_t steps = 0;
  try {
    const nlohmann::json& saved = checkpoint.state.at("loader");
    position = {.epoch = saved.at("epoch").get<std::int64_t>(), .step = saved.at("step").get<std::int64_t>()};
    steps = saved.at("steps_per_epoch").get<std::int64_t>();
  } catch (const nlohmann::json::exception&) {
    refuse("has no position of a loader: it was saved without one. Restore without, and seek() yourself");
  }
  if (steps != loader.steps_per_epoch()) {
    refuse(fmt::format(
        "was saved where an epoch has {} steps, and this loader's has {}: the data or the rows of a step are "
        "others. Restore without the loader, and seek() to where the run is to go on",
        steps, loader.steps_per_epoch()));
  }
  loader.seek(position);
}

namespace detail {

guard::Checkpoint newest_or_throw(const std::filesystem::path& folder) {
  std::optional<guard::Checkpoint> found = guard::newest(folder);
  if (!found) throw DataError(fmt::format("{}: there is no checkpoint to load. Check the folder.", folder.string()));
  return std::move(*found);
}

void save_now(guard::Checkpoint checkpoint, const std::filesystem::path& folder) {
  guard::Checkpointer checkpoints({.folder = folder});
  checkpoints.save(std::move(checkpoint));
  checkpoints.finish();
}

}  // namespace detail
}  // namespace brigade::training
