// When a trainer's memory is audited, and what follows when something is found.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "brigade/train/options.h"
#include "memory_audit.h"

namespace brigade::training {

class StepAudit {
 public:
  // Arguments as MemoryAudit's, which outlive it. Does nothing when options.every is 0.
  StepAudit(const Audit& options, const Layout& layout, std::span<const Flat> parameters, std::vector<NamedFlat> state,
            std::size_t devices, std::source_location site);

  // The step that the calls after it belong to.
  void begin(std::int64_t step) noexcept { step_ = step; }

  // The program has written these segments of the parameters, alike in all copies; or everything was restored.
  void take_over(std::span<const std::size_t> segments);
  void take_over_all();

  // On a device: looks at its copy before it updates `share`.
  void verify(std::size_t device, BlockRange share);
  // After a meeting of all: whether nobody updates anything, as something was found and is not to be gone on with.
  bool stops_update() const noexcept { return has_found() && options_.on_drift != OnDrift::kWarn; }
  // On a device, of what it has just written.
  void written(const Flat& parameters, const Part& part);

  // On one thread, when all devices are through: whether the leaves are to be run again, as what was found has been put back.
  // Throws DriftError.
  bool runs_again();
  // What was put back in this step, for people; empty mostly.
  std::string healed() const { return healed_; }

  // The step has ended.
  void end(bool updated);
  // Of what is in memory then.
  std::optional<std::uint64_t> digest() const;

  // Looks at everything at once. Throws DriftError when something differs and is not put back: it is not to get into a
  // checkpoint.
  void require_intact();

 private:
  bool is_due(std::int64_t step) const noexcept { return memory_ && step % options_.every == 0; }
  bool verifies() const noexcept { return is_due(step_) && is_current_; }
  bool has_found() const noexcept { return verifies() && !memory_->is_clean(); }
  [[noreturn]] void stop(const std::string& when, const std::string& what) const;

  const Audit options_;
  const Layout& layout_;
  const std::size_t devices_;
  const std::source_location site_;
  std::optional<MemoryAudit> memory_;
  std::int64_t step_ = 0;
  bool is_current_ = true;  // whether what was recorded is of what is in memory
  std::string healed_;
};

}  // namespace brigade::training
