#include "layer_check.h"

#include <fmt/format.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>

#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/base/log.h"

namespace brigade::training {
namespace {

using torch::nn::Module;

template <class... Types>
bool is_any_of(const Module& module) {
  return ((dynamic_cast<const Types*>(&module) != nullptr) || ...);
}

bool normalizes_a_leaf(const Module& module) {
  return is_any_of<torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl>(module);
}

template <class... Types>
bool tracks_instances(const Module& module) {
  const auto tracks = [](const auto* norm) { return norm != nullptr && norm->options.track_running_stats(); };
  return (tracks(dynamic_cast<const Types*>(&module)) || ...);
}

// Those that draw only when they drop something.
template <class... Types>
bool drops(const Module& module) {
  const auto does = [](const auto* dropout) { return dropout != nullptr && dropout->options.p() > 0; };
  return (does(dynamic_cast<const Types*>(&module)) || ...);
}

template <class... Types>
bool drops_inside(const Module& module) {
  const auto does = [](const auto* layer) { return layer != nullptr && layer->options.dropout() > 0; };
  return (does(dynamic_cast<const Types*>(&module)) || ...);
}

// What is wrong with modules of one kind, and what to do.
struct Finding {
  std::vector<std::string> names = {};
  std::string_view problem;
  std::string_view remedy;
};

std::vector<Finding> look(const Module& root) {
  Finding norms = {
      .problem = "normalise each leaf by itself and keep the running statistics of some leaves only",
      .remedy =
          "declare them as nn::SyncBatchNorm or nn::GhostBatchNorm, or call nn::convert_sync_batchnorm(model) "
          "for those in a Sequential, ModuleList or ModuleDict"};
  Finding instances = {.problem = "keep the running statistics of some leaves only",
                       .remedy = "set track_running_stats(false)"};
  Finding dropouts = {.problem = "draw from the one generator of the process, which all devices share",
                      .remedy =
                          "declare them as nn::Dropout, or call nn::convert_dropout(model) for those in a Sequential, "
                          "ModuleList or ModuleDict"};
  Finding insides = {
      .problem = "draw from the one generator of the process, inside libtorch",
      .remedy =
          "build them with dropout(0), or take layers without draws of their own, with nn::Dropout between "
          "them"};
  for (const auto& item : root.named_modules()) {
    const Module& module = *item.value();
    const std::string name =
        fmt::format("\"{}\" ({})", item.key().empty() ? std::string("the model") : item.key(), module.name());
    if (normalizes_a_leaf(module)) norms.names.push_back(name);
    if (tracks_instances<torch::nn::InstanceNorm1dImpl, torch::nn::InstanceNorm2dImpl, torch::nn::InstanceNorm3dImpl>(
            module)) {
      instances.names.push_back(name);
    }
    if (drops<torch::nn::DropoutImpl, torch::nn::Dropout2dImpl, torch::nn::Dropout3dImpl, torch::nn::AlphaDropoutImpl,
              torch::nn::FeatureAlphaDropoutImpl>(module)) {
      dropouts.names.push_back(name);
    }
    if (drops_inside<torch::nn::RNNImpl, torch::nn::LSTMImpl, torch::nn::GRUImpl, torch::nn::MultiheadAttentionImpl>(
            module) ||
        is_any_of<torch::nn::RReLUImpl, torch::nn::FractionalMaxPool2dImpl, torch::nn::FractionalMaxPool3dImpl>(
            module)) {
      insides.names.push_back(name);
    }
  }
  std::vector<Finding> findings;
  for (Finding& one : std::vector{norms, instances, dropouts, insides}) {
    if (!one.names.empty()) findings.push_back(std::move(one));
  }
  return findings;
}

// The first few by name.
std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost)));
  std::string text = fmt::format("{}", fmt::join(some, ", "));
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

}  // namespace

void check_layers(const Replica& replica, const DataParallelOptions& options, std::source_location site) {
  if (!replica.module) return;
  std::string text;
  for (const Finding& one : look(*replica.module))
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : ". ", list(one.names), one.problem, one.remedy);
  if (text.empty()) return;
  if (options.logical_shards > 0) {
    throw InvalidArgument(
        fmt::format("DataParallel: with logical_shards nothing may depend on the number of devices, and {}", text),
        {.site = site});
  }
  log::warn(fmt::format("DataParallel ({}): {}", to_string(site), text));
}

}  // namespace brigade::training
