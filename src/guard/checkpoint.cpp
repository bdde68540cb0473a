#include "brigade/guard/checkpoint.h"

#include "guard/files.h"
#include "guard/stored.h"

namespace brigade::guard {
namespace {

// Read once: what was digested is what was parsed.
data::TensorMap tensors_of(const Stored& stored, Part part, const LoadOptions& options) {
  Recorder found;
  data::SafeTensors content = data::read_safetensors(
      stored.path_of(part), {.max_bytes = options.max_bytes,
                             .links = data::SymbolicLinks::kRefuse,
                             .on_bytes = [&](std::span<const std::byte> bytes) { found.add(bytes); }});
  stored.require_same(part, found.record());
  return std::move(content.tensors);
}

Checkpoint checkpoint_of(const Stored& stored, const LoadOptions& options) {
  return {.step = stored.step(),
          .model = tensors_of(stored, Part::kModel, options),
          .optimizer = tensors_of(stored, Part::kOptimizer, options),
          .state = stored.state()};
}

}  // namespace

std::optional<Checkpoint> newest(const std::filesystem::path& folder, const LoadOptions& options) {
  std::optional<Checkpoint> result;
  use_newest(system_calls(), folder, [&](const Stored& stored) { result = checkpoint_of(stored, options); });
  return result;
}

Checkpoint load(const std::filesystem::path& checkpoint, const LoadOptions& options) {
  return checkpoint_of(Stored(Folder::open(system_calls(), checkpoint, Missing::kIsAnError)), options);
}

}  // namespace brigade::guard
