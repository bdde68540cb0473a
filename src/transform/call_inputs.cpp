#include "brigade/transform/call_inputs.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "brigade/transform/grad.h"

namespace brigade::detail {

CallInputs::CallInputs(std::vector<Input> inputs, int devices)
    : inputs_(std::move(inputs)), is_differentiated_(inputs_.size(), false), taken_(static_cast<std::size_t>(devices)) {
  const bool recording = at::GradMode::is_enabled();
  for (std::size_t i = 0; recording && i < inputs_.size(); ++i) is_differentiated_[i] = inputs_[i].requires_grad();
  const bool any = any_differentiated();
  if (any) {
    for (Input& input : inputs_) input.record();
  }
  recorded_ = recording && (any || differentiation_depth() > 0);
}

at::Tensor CallInputs::take(int position) {
  Taken& taken = taken_[static_cast<std::size_t>(position)];
  auto& marks = taken.marks;
  if (marks.empty()) marks.reserve(inputs_.size());
  const std::size_t number = marks.size();
  at::Tensor own = inputs_[number].at(position);
  marks.emplace_back(own.unsafeGetTensorImpl()->version_counter());
  if (is_differentiated_[number]) taken.variables.push_back(own.requires_grad_());
  return own;
}

std::optional<std::size_t> CallInputs::trespass(int position) const {
  const auto& marks = taken_[static_cast<std::size_t>(position)].marks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!inputs_[i].owned() && marks[i].moved()) return i;
  }
  return std::nullopt;
}

bool CallInputs::written(std::size_t number) const {
  return std::any_of(taken_.begin(), taken_.end(),
                     [&](const Taken& t) { return number < t.marks.size() && t.marks[number].moved(); });
}

bool CallInputs::any_differentiated() const noexcept {
  return std::find(is_differentiated_.begin(), is_differentiated_.end(), true) != is_differentiated_.end();
}

std::vector<Input> CallInputs::differentiated() const {
  std::vector<Input> chosen;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (is_differentiated_[i]) chosen.push_back(inputs_[i]);
  }
  return chosen;
}

PerDevice CallInputs::variables() {
  PerDevice all;
  all.reserve(taken_.size());
  for (Taken& taken : taken_) all.push_back(std::move(taken.variables));
  return all;
}

}  // namespace brigade::detail
