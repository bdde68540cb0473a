#include "optim/implementation.h"

#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::optim {
namespace {

[[noreturn]] void refuse(const RuleImplementation& rule, std::string_view call) {
  const auto text =
      rule.layerwise()
          ? "{}: there is no {} of a slice alone, as it needs norms over the whole tensor: call direct, ratio "
            "and apply."
          : "{}: there is no {}, as every element is updated by itself: call update. layerwise() tells.";
  throw InvalidArgument(fmt::format(fmt::runtime(text), rule.name(), call));
}

}  // namespace

void RuleImplementation::update(const Slice<float>&, const Step&) const { refuse(*this, "update"); }
void RuleImplementation::update(const Slice<double>&, const Step&) const { refuse(*this, "update"); }
void RuleImplementation::direct(const Slice<float>&, const Step&) const { refuse(*this, "direct"); }
void RuleImplementation::direct(const Slice<double>&, const Step&) const { refuse(*this, "direct"); }
double RuleImplementation::ratio(double, double) const { refuse(*this, "ratio"); }
void RuleImplementation::apply(const Slice<float>&, const Step&, double) const { refuse(*this, "apply"); }
void RuleImplementation::apply(const Slice<double>&, const Step&, double) const { refuse(*this, "apply"); }

}  // namespace brigade::optim
