// A run at one step, as named tensors and JSON, and how it comes back from the disk.
//
//   if (const auto found = guard::newest("run")) {
//     const torch::Tensor w = found->model.at("w");
//     const std::int64_t epoch = found->state.at("epoch");
//   }
//
// On the disk it is a folder `step-00000042` with model.safetensors, optimizer.safetensors, state.json and manifest.json, which
// has the size and digest of the others (docs/checkpoints.md). Nothing in them is ever run. Programs that train with DataParallel
// use its save() and load().
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "brigade/data/safetensors.h"

namespace brigade::guard {

struct Checkpoint {
  std::int64_t step = 0;  // completed ones
  data::TensorMap model = {};
  data::TensorMap optimizer = {};                   // and whatever else a run keeps in numbers, such as the loss scale
  nlohmann::json state = nlohmann::json::object();  // "step" is written into it, and read back
};

struct LoadOptions {
  std::uint64_t max_bytes = std::uint64_t{64} << 30;  // of one file's tensors; more is refused
};

// The newest checkpoint of `folder` that is as it was written. A damaged one is announced in the log, and the one before is
// taken; a run may go on writing meanwhile. Nothing when there is no checkpoint, or no folder. Throws DataError when there are
// some and none can be used.
std::optional<Checkpoint> newest(const std::filesystem::path& folder, const LoadOptions& options = {});

// One checkpoint, by its own folder. Throws DataError, naming the file and what is wrong, unless all of it is as it was written.
Checkpoint load(const std::filesystem::path& checkpoint, const LoadOptions& options = {});

}  // namespace brigade::guard
