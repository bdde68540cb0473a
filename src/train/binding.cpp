#include "binding.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "brigade/base/error.h"

namespace brigade::training {
namespace {

std::string describe(const NamedTensor& one) {
  return fmt::format("{} {}[{}]", one.name, c10::toString(one.tensor.scalar_type()),
                     fmt::join(one.tensor.sizes(), ", "));
}

void require_alike(std::string_view what, std::size_t replica, const std::vector<NamedTensor>& first,
                   const std::vector<NamedTensor>& other) {
  const auto refuse = [&](const std::string& one, const std::string& another) {
    throw InvalidArgument(fmt::format(
        "DataParallel: replicas must be alike, and replica 0 has the {} {}, replica {} has {}: the factory has to "
        "build the same model at each call",
        what, one, replica, another));
  };
  for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
    const std::string one = i < first.size() ? describe(first[i]) : "no more";
    const std::string another = i < other.size() ? describe(other[i]) : "no more";
    if (one != another) refuse(one, another);
  }
}

void copy_all(const std::vector<NamedTensor>& from, std::vector<NamedTensor>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
}

}  // namespace

Binding::Binding(const Layout& layout, std::vector<Replica>& replicas, Copies copies) : layout_(layout) {
  const at::NoGradGuard no_grad;
  const Replica& first = replicas.front();
  flats_.reserve(copies == Copies::kOne ? 1 : replicas.size());
  versions_.resize(replicas.size());
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    Replica& replica = replicas[r];
    require_alike("parameter", r, first.parameters, replica.parameters);
    require_alike("frozen parameter", r, first.constants, replica.constants);
    require_alike("buffer", r, first.buffers, replica.buffers);
    if (r == 0 || copies == Copies::kEach) flats_.emplace_back(layout);
    for (std::size_t i = 0; i < replica.parameters.size(); ++i) {
      const at::Tensor view = of(r).view(i);
      if (r == 0 || copies == Copies::kEach) view.copy_(first.parameters[i].tensor);
      replica.parameters[i].tensor.set_data(view);
      versions_[r].push_back(static_cast<std::uint32_t>(replica.parameters[i].tensor._version()));
    }
    if (r == 0) continue;
    copy_all(first.buffers, replica.buffers);
    if (copies == Copies::kEach) {
      copy_all(first.constants, replica.constants);
    } else {
      for (std::size_t i = 0; i < first.constants.size(); ++i)
        replica.constants[i].tensor.set_data(first.constants[i].tensor.detach());
    }
  }
}

std::vector<std::size_t> Binding::refresh(std::vector<Replica>& replicas) {
  const at::NoGradGuard no_grad;
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < layout_.segments().size(); ++i) {
    if (take_over(replicas.front(), i)) changed.push_back(i);
  }
  for (std::size_t r = 1; r < replicas.size(); ++r) {
    for (std::size_t i = 0; i < layout_.segments().size(); ++i) {
      const at::Tensor& tensor = replicas[r].parameters[i].tensor;
      if (tensor.data_ptr() != of(r).at(i)) require_same(replicas[r], r, i);
      const auto version = static_cast<std::uint32_t>(tensor._version());
      if (std::exchange(versions_[r][i], version) == version) continue;
      // One that all share may have been written through any of them.
      if (!is_shared()) require_same(replicas[r], r, i);
      changed.push_back(i);
    }
  }
  if (!is_shared()) {
    for (const std::size_t i : changed) {
      for (std::size_t other = 1; other < flats_.size(); ++other) flats_[other].view(i).copy_(flats_[0].view(i));
    }
  }
  return changed;
}

// Whether the program has given the first replica's parameter other values, by writing them or by other memory.
bool Binding::take_over(Replica& first, std::size_t parameter) {
  const auto& [name, tensor] = first.parameters[parameter];
  const Segment& segment = layout_.segments()[parameter];
  if (tensor.scalar_type() != segment.dtype || tensor.sizes() != at::IntArrayRef(segment.sizes)) {
    throw InvalidArgument(
        fmt::format("DataParallel: parameter {} was {}[{}] and is {}[{}] now. Convert the model before it is given to "
                    "DataParallel; for bfloat16 arithmetic set .precision",
                    name, c10::toString(segment.dtype), fmt::join(segment.sizes, ", "),
                    c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
  }
  const bool moved = tensor.data_ptr() != flats_[0].at(parameter);
  if (moved) {
    flats_[0].view(parameter).copy_(tensor);
    tensor.set_data(flats_[0].view(parameter));
  }
  const auto version = static_cast<std::uint32_t>(tensor._version());
  return std::exchange(versions_[0][parameter], version) != version || moved;
}

void Binding::require_same(const Replica& replica, std::size_t r, std::size_t parameter) const {
  const auto& [name, tensor] = replica.parameters[parameter];
  if (tensor.data_ptr() == of(r).at(parameter) && tensor.equal(flats_[0].view(parameter))) return;
  throw InvalidArgument(
      fmt::format("DataParallel: parameter {} of replica {} was given values of its own. Write or load them into the "
                  "model of replica 0, from which all take them",
                  name, r));
}

void Binding::mark_written(Replica& replica, std::size_t r) {
  for (std::size_t i = 0; i < replica.parameters.size(); ++i) {
    const at::Tensor& tensor = replica.parameters[i].tensor;
    tensor.unsafeGetTensorImpl()->bump_version();
    versions_[r][i] = static_cast<std::uint32_t>(tensor._version());
  }
}

std::vector<Layout::Entry> entries_of(const Replica& replica) {
  std::vector<Layout::Entry> entries;
  for (const auto& [name, tensor] : replica.parameters) entries.push_back({name, tensor});
  if (entries.empty()) {
    throw InvalidArgument("DataParallel: the model has no parameter that requires grad, so there is nothing to train");
  }
  return entries;
}

}  // namespace brigade::training
