// The one-cycle curve, phase by phase as torch's OneCycleLR.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "optim/curves.h"
#include "optim/schedule_errors.h"

namespace brigade::schedule::detail {
namespace {

// One phase begins where the one before it ends.
struct Phase {
  double end = 0;  // in steps after warm-up; may lie between two steps, and before the first where there is no room
  double to = 0;   // the rate there
};

class OneCycle : public Curve {
 public:
  OneCycle(std::int64_t total_steps, const OneCycleOptions& options) : total_steps_(total_steps), options_(options) {
    check_steps("total_steps of one cycle", total_steps);
    check_positive("div_factor of one cycle", options.div_factor);
    check_positive("final_div_factor of one cycle", options.final_div_factor);
    const double rise = options.pct_start;
    if (options.three_phase && !(rise >= 0 && rise <= 0.5)) {
      refuse("pct_start is {}: three phases rise and fall over as many steps, so give 0 to 0.5.", rise);
    }
    if (!(rise >= 0 && rise < 1)) {
      refuse("pct_start is {}: give the share of steps that rise, 0 or more and below 1.", rise);
    }
  }

  double rate(const Start& start, std::int64_t step) const override {
    double from = first(start);
    if (step >= total_steps_ - 1) return last(from);
    const auto position = static_cast<double>(step - start.step);
    double begin = 0;
    for (const Phase& phase : phases(start)) {
      if (position <= phase.end) {
        if (phase.end <= begin) return phase.to;  // a rise without steps
        const double left = (phase.end - position) / (phase.end - begin);
        return std::lerp(phase.to, from, options_.anneal == Anneal::kCosine ? half_cosine(left) : left);
      }
      from = phase.to;
      begin = phase.end;
    }
    return from;
  }

  void check_warmup(std::int64_t steps) const override { check_warmup_ends_before(steps, "one cycle", total_steps_); }

  std::string describe(const Start& start, std::int64_t origin) const override {
    const std::vector<Phase> all = phases(start);
    std::string text =
        fmt::format("one {} cycle from {:.6g} up to {}", options_.anneal == Anneal::kCosine ? "cosine" : "linear",
                    first(start), place(all[0], start, origin));
    if (options_.three_phase) text += ", down to " + place(all[1], start, origin);
    return text + (options_.three_phase ? ", then to " : ", then down to ") + place(all.back(), start, origin);
  }

 private:
  double first(const Start& start) const { return start.peak / options_.div_factor; }
  double last(double first) const { return first / options_.final_div_factor; }

  std::vector<Phase> phases(const Start& start) const {
    const auto steps = static_cast<double>(total_steps_ - start.step);
    const double low = first(start);
    std::vector<Phase> all = {{.end = options_.pct_start * steps - 1, .to = start.peak}};
    if (options_.three_phase) all.push_back({.end = 2 * options_.pct_start * steps - 2, .to = low});
    all.push_back({.end = steps - 1, .to = last(low)});
    return all;
  }

  static std::string place(const Phase& phase, const Start& start, std::int64_t origin) {
    const double end = std::max(phase.end, 0.0);
    const auto nearest = static_cast<std::int64_t>(std::floor(end + 0.5));
    return fmt::format("{:.6g} {} step {}", phase.to, end == std::floor(end) ? "at" : "near",
                       origin + start.step + nearest);
  }

  std::int64_t total_steps_;
  OneCycleOptions options_;
};

}  // namespace

CurvePointer one_cycle(std::int64_t total_steps, const OneCycleOptions& options) {
  return std::make_shared<OneCycle>(total_steps, options);
}

}  // namespace brigade::schedule::detail
