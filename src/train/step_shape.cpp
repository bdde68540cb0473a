#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/train/trainer.h"

namespace brigade::training {
namespace {

template <class... Arguments>
[[noreturn]] void refuse(std::source_location site, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw InvalidArgument("DataParallel: " + fmt::format(text, std::forward<Arguments>(arguments)...), {.site = site});
}

void require_positive(std::string_view name, std::int64_t value, std::int64_t least, std::source_location site) {
  if (value < least) refuse(site, "{} is {}; give {} or more", name, value, least);
}

StepShape invariant_shape(const DataParallelOptions& options, std::int64_t devices, std::source_location site) {
  if (options.per_device_batch != 0 || options.accumulate != 1) {
    refuse(
        site,
        "per_device_batch and accumulate stand beside logical_shards. With logical_shards the rows of a step must not "
        "depend on the number of devices: give global_batch, and as many logical_shards as N devices would carry "
        "micro-batches (N * accumulate)");
  }
  require_positive("logical_shards", options.logical_shards, 1, site);
  if (options.global_batch == 0) refuse(site, "logical_shards needs a global_batch: the rows of one step");
  if (options.global_batch % options.logical_shards != 0) {
    refuse(site, "a global_batch of {} rows cannot be cut into {} equal logical_shards; {} or {} rows can",
           options.global_batch, options.logical_shards,
           options.global_batch / options.logical_shards * options.logical_shards,
           (options.global_batch / options.logical_shards + 1) * options.logical_shards);
  }
  if (!options.devices.empty() && devices > options.logical_shards) {
    refuse(site, "{} devices for {} logical_shards: a device needs at least one. Give fewer devices, or more shards",
           devices, options.logical_shards);
  }
  return {.devices = std::min(devices, options.logical_shards),
          .leaves = options.logical_shards,
          .rows_per_leaf = options.global_batch / options.logical_shards};
}

}  // namespace

StepShape step_shape(const DataParallelOptions& options, std::source_location site) {
  require_positive("global_batch", options.global_batch, 0, site);
  require_positive("per_device_batch", options.per_device_batch, 0, site);
  require_positive("accumulate", options.accumulate, 1, site);
  const std::int64_t devices =
      options.devices.empty() ? local_device_count() : static_cast<std::int64_t>(options.devices.size());
  if (options.logical_shards != 0) return invariant_shape(options, devices, site);

  const std::int64_t leaves = devices * options.accumulate;
  if (options.global_batch == 0 && options.per_device_batch == 0) {
    refuse(site,
           "how many rows has a step? Give per_device_batch, or global_batch (with logical_shards for the same bits "
           "on any number of devices)");
  }
  if (options.global_batch == 0) {
    return {.devices = devices, .leaves = leaves, .rows_per_leaf = options.per_device_batch};
  }
  if (options.global_batch % leaves != 0) {
    refuse(site, "a global_batch of {} rows cannot be cut equally for {} devices with accumulate = {}",
           options.global_batch, devices, options.accumulate);
  }
  const std::int64_t rows = options.global_batch / leaves;
  if (options.per_device_batch != 0 && options.per_device_batch != rows) {
    refuse(site,
           "global_batch {} and per_device_batch {} contradict each other on {} devices with accumulate = {}: give one",
           options.global_batch, options.per_device_batch, devices, options.accumulate);
  }
  return {.devices = devices, .leaves = leaves, .rows_per_leaf = rows};
}

}  // namespace brigade::training
