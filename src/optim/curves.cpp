#include "optim/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "optim/schedule_errors.h"

namespace brigade::schedule::detail {
namespace {

constexpr std::size_t kMilestonesListed = 6;

class Flat : public Curve {
 public:
  double rate(const Start& start, std::int64_t /*step*/) const override { return start.peak; }

  std::string describe(const Start& /*start*/, std::int64_t /*origin*/) const override { return "constant"; }
};

class Staircase : public Curve {
 public:
  Staircase(std::int64_t every, double gamma) : every_(every), gamma_(gamma) {
    check_steps("`every` of a step schedule", every);
    check_positive("gamma of a step schedule", gamma);
  }

  double rate(const Start& start, std::int64_t step) const override {
    const std::int64_t drops = (step - start.step) / every_;
    return start.peak * std::pow(gamma_, static_cast<double>(drops));
  }

  std::string describe(const Start& /*start*/, std::int64_t /*origin*/) const override {
    return every_ == 1 ? fmt::format("× {:.6g} every step", gamma_)
                       : fmt::format("× {:.6g} every {} steps", gamma_, every_);
  }

 private:
  std::int64_t every_;
  double gamma_;
};

class StaircaseAt : public Curve {
 public:
  StaircaseAt(std::vector<std::int64_t> milestones, double gamma) : milestones_(std::move(milestones)), gamma_(gamma) {
    check_positive("gamma of a step schedule", gamma);
    if (milestones_.empty()) refuse("step_at has no milestones: give at least one step, or leave it out.");
    const auto bad = std::ranges::adjacent_find(milestones_, std::greater_equal());
    if (bad != milestones_.end()) {
      refuse("milestone {} is followed by {}: give each once, in ascending order.", *bad, *std::next(bad));
    }
    check_steps("the first milestone", milestones_.front());
    check_steps("the last milestone", milestones_.back());
  }

  double rate(const Start& start, std::int64_t step) const override {
    const auto drops = std::ranges::upper_bound(milestones_, step) - milestones_.begin();
    return start.peak * std::pow(gamma_, static_cast<double>(drops));
  }

  void check_warmup(std::int64_t steps) const override {
    if (steps < milestones_.front()) return;
    refuse(
        "a warm-up over {} steps leaves nothing before the milestone at step {}. Warm up for fewer steps, or take a "
        "later milestone: they count from step 0, warm-up included.",
        steps, milestones_.front());
  }

  std::string describe(const Start& /*start*/, std::int64_t origin) const override {
    std::vector<std::int64_t> steps = milestones_;
    for (std::int64_t& step : steps) step += origin;
    const std::string text = fmt::format("× {:.6g} at step", gamma_);
    if (steps.size() == 1) return fmt::format("{} {}", text, steps[0]);
    const std::size_t listed = steps.size() <= kMilestonesListed ? steps.size() - 1 : kMilestonesListed / 2;
    return fmt::format("{}s {} {} {}", text, fmt::join(std::span(steps).first(listed), ", "),
                       listed + 1 == steps.size() ? "and" : fmt::format("and {} more up to", steps.size() - listed),
                       steps.back());
  }

 private:
  std::vector<std::int64_t> milestones_;
  double gamma_;
};

class Exponential : public Curve {
 public:
  Exponential(double gamma, std::int64_t every) : gamma_(gamma), every_(every) {
    check_positive("gamma of an exponential schedule", gamma);
    check_steps("`every` of an exponential schedule", every);
  }

  double rate(const Start& start, std::int64_t step) const override {
    return start.peak * std::pow(gamma_, static_cast<double>(step - start.step) / static_cast<double>(every_));
  }

  std::string describe(const Start& /*start*/, std::int64_t /*origin*/) const override {
    return every_ == 1 ? fmt::format("exponential, × {:.6g} a step", gamma_)
                       : fmt::format("exponential, × {:.6g} in {} steps", gamma_, every_);
  }

 private:
  double gamma_;
  std::int64_t every_;
};

// From the peak to a last rate. The kinds differ in what share of that height is left with a share of the steps.
class Descent : public Curve {
 public:
  // `name` as in "a cosine".
  Descent(std::string_view name, std::int64_t total_steps, double to)
      : name_(name), total_steps_(total_steps), to_(to) {
    check_steps(fmt::format("total_steps of {}", name), total_steps);
    check_non_negative(fmt::format("the rate that {} ends at", name), to);
  }

  double rate(const Start& start, std::int64_t step) const override {
    if (step >= total_steps_) return to_;
    const double left = static_cast<double>(total_steps_ - step) / static_cast<double>(total_steps_ - start.step);
    return std::lerp(to_, start.peak, height(left));
  }

  void check_warmup(std::int64_t steps) const override { check_warmup_ends_before(steps, name_, total_steps_); }

  std::string describe(const Start& /*start*/, std::int64_t origin) const override {
    return fmt::format("{} to {:.6g} at step {}", kind(), to_, origin + total_steps_);
  }

 private:
  virtual double height(double left) const = 0;  // 0 at 0, 1 at 1
  virtual std::string kind() const = 0;

  std::string_view name_;
  std::int64_t total_steps_;
  double to_;
};

class Cosine : public Descent {
 public:
  Cosine(std::int64_t total_steps, double to) : Descent("a cosine", total_steps, to) {}

 private:
  double height(double left) const override { return half_cosine(left); }
  std::string kind() const override { return "cosine"; }
};

class Linear : public Descent {
 public:
  Linear(std::int64_t total_steps, double to) : Descent("a line", total_steps, to) {}

 private:
  double height(double left) const override { return left; }
  std::string kind() const override { return "linear"; }
};

class Polynomial : public Descent {
 public:
  Polynomial(std::int64_t total_steps, double power, double to)
      : Descent("a polynomial", total_steps, to), power_(power) {
    check_positive("the power of a polynomial", power);
  }

 private:
  double height(double left) const override { return std::pow(left, power_); }
  std::string kind() const override { return fmt::format("polynomial of power {:.6g}", power_); }

  double power_;
};

class InverseSqrt : public Curve {
 public:
  explicit InverseSqrt(std::optional<std::int64_t> time_scale) : time_scale_(time_scale) {
    if (time_scale) check_steps("time_scale of an inverse square root", *time_scale);
  }

  double rate(const Start& start, std::int64_t step) const override {
    const auto scale = static_cast<double>(time_scale(start));
    return start.peak * std::sqrt(scale / (scale + static_cast<double>(step - start.step)));
  }

  std::string describe(const Start& start, std::int64_t /*origin*/) const override {
    const std::int64_t scale = time_scale(start);
    return fmt::format("inverse square root, time scale {} step{}", scale, scale == 1 ? "" : "s");
  }

 private:
  std::int64_t time_scale(const Start& start) const {
    return time_scale_.value_or(std::max<std::int64_t>(start.step, 1));
  }

  std::optional<std::int64_t> time_scale_;
};

}  // namespace

CurvePointer flat() { return std::make_shared<Flat>(); }

CurvePointer staircase(std::int64_t every, const StepOptions& options) {
  return std::make_shared<Staircase>(every, options.gamma);
}

CurvePointer staircase_at(std::vector<std::int64_t> milestones, const StepOptions& options) {
  return std::make_shared<StaircaseAt>(std::move(milestones), options.gamma);
}

CurvePointer exponential(double gamma, const ExponentialOptions& options) {
  return std::make_shared<Exponential>(gamma, options.every);
}

CurvePointer cosine(std::int64_t total_steps, const CosineOptions& options) {
  return std::make_shared<Cosine>(total_steps, options.to);
}

CurvePointer linear(std::int64_t total_steps, const LinearOptions& options) {
  return std::make_shared<Linear>(total_steps, options.to);
}

CurvePointer polynomial(std::int64_t total_steps, const PolynomialOptions& options) {
  return std::make_shared<Polynomial>(total_steps, options.power, options.to);
}

CurvePointer inverse_sqrt(const InverseSqrtOptions& options) {
  return std::make_shared<InverseSqrt>(options.time_scale);
}

double half_cosine(double left) {
  const double root = std::sin(std::numbers::pi / 2 * left);
  return root * root;
}

void check_warmup_ends_before(std::int64_t warmup_steps, std::string_view curve, std::int64_t total_steps) {
  if (warmup_steps < total_steps) return;
  refuse(
      "a warm-up over {} steps leaves nothing of {} that ends at step {}. Warm up for fewer steps, or train for more.",
      warmup_steps, curve, total_steps);
}

}  // namespace brigade::schedule::detail
