#include "binding.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

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

void Binding::refresh(std::vector<Replica>& replicas) {
  const at::NoGradGuard no_grad;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    for (std::size_t i = 0; i < replicas[r].parameters.size(); ++i) {
      const auto& [name, tensor] = replicas[r].parameters[i];
      const Segment& segment = layout_.segments()[i];
      if (tensor.data_ptr() == of(r).at(i) && tensor.scalar_type() == segment.dtype) continue;
      if (tensor.scalar_type() != segment.dtype || tensor.sizes() != at::IntArrayRef(segment.sizes)) {
        throw InvalidArgument(
            fmt::format("DataParallel: parameter {} of replica {} was {}[{}] and is {}[{}] now. Convert the model "
                        "before it is given to "
                        "DataParallel; for bfloat16 arithmetic set .precision",
                        name, r, c10::toString(segment.dtype), fmt::join(segment.sizes, ", "),
                        c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
      }
      if (r > 0) {
        throw InvalidArgument(
            fmt::format("DataParallel: parameter {} of replica {} was given other memory. Load values into the model "
                        "of replica 0, from "
                        "which all take them",
                        name, r));
      }
      for (std::size_t other = 0; other < flats_.size(); ++other) flats_[other].view(i).copy_(tensor);
      replicas[0].parameters[i].tensor.set_data(flats_[0].view(i));
    }
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
