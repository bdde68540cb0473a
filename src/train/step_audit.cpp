#include "step_audit.h"

#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/base/log.h"

namespace brigade::training {

StepAudit::StepAudit(const Audit& options, const Layout& layout, std::span<const Flat> parameters,
                     std::vector<NamedFlat> state, std::size_t devices, std::source_location site)
    : options_(options), layout_(layout), devices_(devices), site_(site) {
  if (options.every > 0) memory_.emplace(layout, parameters, std::move(state), devices);
}

void StepAudit::take_over(std::span<const std::size_t> segments) {
  if (!memory_) return;
  for (const std::size_t segment : segments) memory_->record(segment);
}

void StepAudit::take_over_all() {
  is_current_ = true;
  if (memory_) memory_->record_all();
}

void StepAudit::verify(std::size_t device, BlockRange share) {
  if (verifies()) memory_->verify(device, share);
}

void StepAudit::written(const Flat& parameters, const Part& part) {
  if (is_due(step_ + 1)) memory_->record(parameters, part);
}

bool StepAudit::runs_again() {
  if (!has_found()) return false;
  const std::string what = memory_->describe();
  if (options_.on_drift == OnDrift::kWarn) {
    log::warn(fmt::format("step {}: {}. The step went on with it", step_, what));
    memory_->accept();
    return false;
  }
  if (options_.on_drift != OnDrift::kHeal || !memory_->heal())
    stop(fmt::format("before the update of step {}", step_), what);
  log::warn(fmt::format("step {}: {}. It was put back, and the step's leaves are run again", step_, what));
  healed_ = what;
  return true;
}

void StepAudit::end(bool updated) {
  if (updated) is_current_ = is_due(step_ + 1);
  healed_.clear();
}

std::optional<std::uint64_t> StepAudit::digest() const {
  return memory_ && is_current_ ? std::make_optional(memory_->digest()) : std::nullopt;
}

void StepAudit::require_intact() {
  if (!memory_ || !is_current_) return;
  for (std::size_t device = 0; device < devices_; ++device) memory_->verify(device, layout_.share(device, devices_));
  if (memory_->is_clean()) return;
  const std::string what = memory_->describe();
  const std::string when = fmt::format("before the checkpoint of step {}", step_);
  if (options_.on_drift != OnDrift::kHeal || !memory_->heal()) stop(when, what);
  log::warn(fmt::format("{}: {}. It was put back", when, what));
}

void StepAudit::stop(const std::string& when, const std::string& what) const {
  throw DriftError(
      fmt::format("{}, {}. Nothing was updated. Memory is damaged, or something writes where it should not: go on from "
                  "the last checkpoint, or, where a replica still has the right value or one bit has flipped, put it "
                  "back with .audit = {{.on_drift = OnDrift::kHeal}}",
                  when, what),
      {.device = memory_->device(), .site = site_});
}

}  // namespace brigade::training
