#include "snapshot.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "brigade/base/error.h"
#include "brigade/base/log.h"
#include "brigade/runtime/arithmetic.h"

namespace brigade::training {
namespace {

using nlohmann::json;

constexpr std::size_t kListed = 12;

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

// The difference of every tensor that cannot be copied, a line each.
void compare(std::string_view part, const data::TensorMap& saved, const std::vector<NamedTensor>& own,
             std::vector<std::string>& differences) {
  std::set<std::string_view> known;
  for (const auto& [name, tensor] : own) {
    known.insert(name);
    const auto found = saved.find(name);
    if (found == saved.end()) {
      differences.push_back(fmt::format("{} {}: the checkpoint has none, this run {}", part, name, describe(tensor)));
    } else if (describe(found->second) != describe(tensor)) {
      differences.push_back(fmt::format("{} {}: {} in the checkpoint, {} in this run", part, name,
                                        describe(found->second), describe(tensor)));
    }
  }
  for (const auto& [name, tensor] : saved) {
    if (!known.contains(name))
      differences.push_back(
          fmt::format("{} {}: {} in the checkpoint, this run has none", part, name, describe(tensor)));
  }
}

std::string listed(const std::vector<std::string>& lines) {
  const std::size_t shown = std::min(lines.size(), kListed);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + lines[i];
  return shown < lines.size() ? text + fmt::format("\n  and {} more", lines.size() - shown) : text;
}

json description_of(const std::vector<optim::Group>& groups, const std::vector<NamedTensor>& model) {
  std::vector<optim::NamedShape> shapes;
  for (const auto& [name, tensor] : model) {
    if (tensor.requires_grad()) shapes.push_back({name, tensor.sizes()});
  }
  json description = json::object();
  const auto settings = optim::settings_of(groups, shapes);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    json one = json::object();
    if (settings[i].learning_rate != 1) one["learning_rate"] = settings[i].learning_rate;
    if (settings[i].weight_decay) one["weight_decay"] = *settings[i].weight_decay;
    if (settings[i].trust_ratio == optim::TrustRatio::kOff) one["trust_ratio"] = false;
    if (!one.empty()) description[std::string(shapes[i].name)] = one;
  }
  return description;
}

// Whatever changes the bits of a step, and nothing else: neither devices nor buckets do.
json description_of(const DataParallelOptions& options, const StepShape& shape, const std::vector<NamedTensor>& model) {
  const LossScale& scale = options.loss_scale;
  json description = {{"optimizer", options.optimizer.describe()},
                      {"learning_rate", options.learning_rate.bind(shape.global_batch()).describe()},
                      {"clip", options.clip.describe()},
                      {"global_batch", shape.global_batch()},
                      {"leaves", shape.leaves},
                      {"precision", options.precision == Precision::kBFloat16 ? "bfloat16" : "float32"},
                      {"seed", options.seed},
                      {"groups", description_of(options.groups, model)}};
  if (scale.interval > 0)
    description["loss_scale"] = {{"growth", scale.growth}, {"backoff", scale.backoff}, {"interval", scale.interval}};
  if (options.compress.codec) {
    description["compress"] = {{"codec", options.compress.codec.describe()},
                               {"error_feedback", static_cast<int>(options.compress.error_feedback)},
                               {"start_step", options.compress.start_step}};
  }
  return description;
}

std::vector<std::string> differences_of(const json& saved, const json& own) {
  std::vector<std::string> differences;
  // What is no object, or an empty one, is a leaf without a path to flatten().
  const json one = saved.is_object() && !saved.empty() ? saved.flatten() : json::object();
  const json other = own.flatten();
  std::set<std::string> paths;
  for (const json* side : {&one, &other}) {
    for (const auto& [path, value] : side->items()) paths.insert(path);
  }
  const auto text = [](const json& side, const std::string& path) {
    const auto found = side.find(path);
    return found == side.end() ? std::string("nothing") : found->dump(-1, ' ', true);
  };
  for (const std::string& path : paths) {
    if (text(one, path) == text(other, path)) continue;
    differences.push_back(fmt::format("{}: {} in the checkpoint, {} in this run",
                                      json(path.substr(1)).dump(-1, ' ', true), text(one, path), text(other, path)));
  }
  return differences;
}

json own_arithmetic() {
  json all = json::object();
  for (const auto& [name, value] : arithmetic()) all[name] = value;
  return all;
}

// A run continues anywhere, but its bits are those of one machine.
void warn_of_other_arithmetic(const guard::Checkpoint& checkpoint) {
  const json saved = checkpoint.state.value("/written_by/arithmetic"_json_pointer, json::object());
  const auto differences = differences_of(saved, own_arithmetic());
  if (saved.empty() || differences.empty()) return;
  log::warn(
      fmt::format("the checkpoint of step {} was written with another arithmetic, so the run goes on, but not to the "
                  "bits that it would have had there:{}",
                  checkpoint.step, listed(differences)));
}

data::TensorMap copies_of(const std::vector<NamedTensor>& tensors) {
  data::TensorMap copies;
  for (const auto& [name, tensor] : tensors) copies.emplace(name, tensor.detach().clone(at::MemoryFormat::Contiguous));
  return copies;
}

void copy_all(const data::TensorMap& from, const std::vector<NamedTensor>& to) {
  for (const auto& [name, tensor] : to) tensor.detach().copy_(from.at(name));
}

}  // namespace

at::Tensor tensor_on(double& number) { return at::from_blob(&number, {}, at::TensorOptions(at::kDouble)); }
at::Tensor tensor_on(std::int64_t& number) { return at::from_blob(&number, {}, at::TensorOptions(at::kLong)); }

std::vector<NamedTensor> tensors_of(const Replica& replica) {
  std::vector<NamedTensor> tensors;
  std::set<std::string_view> names;
  for (const auto* some : {&replica.parameters, &replica.constants, &replica.buffers}) {
    for (const NamedTensor& one : *some) {
      if (!names.insert(one.name).second) {
        throw InvalidArgument(
            fmt::format("checkpoint: two tensors of the model are called {}. Give a parameter and a buffer "
                        "names of their own",
                        one.name));
      }
      tensors.push_back(one);
    }
  }
  return tensors;
}

guard::Checkpoint snapshot_of(const Memory& memory, std::int64_t step, const DataParallelOptions& options,
                              const StepShape& shape) {
  const at::NoGradGuard no_grad;
  return {.step = step,
          .model = copies_of(memory.model),
          .optimizer = copies_of(memory.optimizer),
          .state = {{"training", description_of(options, shape, memory.model)},
                    {"written_by",
                     {{"brigade", BRIGADE_VERSION}, {"devices", shape.devices}, {"arithmetic", own_arithmetic()}}}}};
}

void require_restorable(const guard::Checkpoint& checkpoint, const Memory& memory, const DataParallelOptions& options,
                        const StepShape& shape, OtherOptions other_options) {
  std::vector<std::string> differences;
  compare("model", checkpoint.model, memory.model, differences);
  compare("optimizer", checkpoint.optimizer, memory.optimizer, differences);
  if (!differences.empty()) {
    throw InvalidArgument(
        fmt::format("the checkpoint of step {} is of another model or optimizer, and nothing was loaded:{}",
                    checkpoint.step, listed(differences)));
  }
  const auto saved = checkpoint.state.find("training");
  differences = differences_of(saved == checkpoint.state.end() ? json::object() : *saved,
                               description_of(options, shape, memory.model));
  if (differences.empty()) return warn_of_other_arithmetic(checkpoint);
  const std::string text =
      fmt::format("the checkpoint of step {} was trained with other options:{}", checkpoint.step, listed(differences));
  if (other_options == OtherOptions::kWarn) return log::warn(text + "\nThe run goes on with those it has now.");
  throw InvalidArgument(
      text +
      "\nNothing was loaded. Restore with .other_options = OtherOptions::kWarn to go on with those of "
      "this run");
}

void restore(const guard::Checkpoint& checkpoint, const Memory& memory, const std::vector<Replica>& replicas) {
  const at::NoGradGuard no_grad;
  copy_all(checkpoint.optimizer, memory.optimizer);
  copy_all(checkpoint.model, memory.model);
  for (std::size_t r = 1; r < replicas.size(); ++r) copy_all(checkpoint.model, tensors_of(replicas[r]));
}

}  // namespace brigade::training
