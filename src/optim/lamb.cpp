#include "brigade/optim/lamb.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/lamb.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <cmath>

#include "optim/lanes-inl.h"
#include "optim/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct LambDirection {
  LambDirection(const LambOptions& options, const Step& step)
      : moments(options.beta1, options.beta2, step.index),
        mean_scale(static_cast<T>(1 / moments.first_correction)),
        root_scale(static_cast<T>(1 / std::sqrt(moments.second_correction))),
        eps(static_cast<T>(options.eps)),
        weight_decay(static_cast<T>(options.weight_decay)) {}

  // Written are the gradient, exp_avg and exp_avg_sq.
  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& parameters, const std::array<T*, 3>& written) const {
    const auto g = hn::LoadU(d, written[0]);
    const auto m = hn::Mul(moments.update_first(d, g, written[1]), hn::Set(d, mean_scale));
    const auto root = hn::Mul(hn::Sqrt(moments.update_second(d, g, written[2])), hn::Set(d, root_scale));
    const auto u = hn::Div(m, hn::Add(root, hn::Set(d, eps)));
    hn::StoreU(with_decay(d, u, weight_decay, hn::LoadU(d, parameters[0])), d, written[0]);
  }

  Moments<T> moments;
  T mean_scale;
  T root_scale;
  T eps;
  T weight_decay;
};

template <class T>
struct LambUpdate {
  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& direction, const std::array<T*, 1>& parameters) const {
    const auto step = hn::Mul(hn::Set(d, scale), hn::LoadU(d, direction[0]));
    hn::StoreU(hn::Sub(hn::LoadU(d, parameters[0]), step), d, parameters[0]);
  }

  T scale;
};

void lamb_direct_float(const LambOptions& options, const Step& step, const Slice<float>& slice) {
  direct_vectors<2>(slice, step, LambDirection<float>(options, step));
}
void lamb_direct_double(const LambOptions& options, const Step& step, const Slice<double>& slice) {
  direct_vectors<2>(slice, step, LambDirection<double>(options, step));
}
void lamb_apply_float(const Slice<float>& slice, double scale) {
  apply_vectors<0>(slice, LambUpdate<float>{static_cast<float>(scale)});
}
void lamb_apply_double(const Slice<double>& slice, double scale) { apply_vectors<0>(slice, LambUpdate<double>{scale}); }

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "optim/implementation.h"
#include "optim/options.h"
#include "optim/trust_ratio.h"

namespace brigade::optim {
HWY_EXPORT(lamb_direct_float);
HWY_EXPORT(lamb_direct_double);
HWY_EXPORT(lamb_apply_float);
HWY_EXPORT(lamb_apply_double);

namespace {

constexpr std::string_view kName = "lamb";
constexpr std::array<std::string_view, 2> kState = {"exp_avg", "exp_avg_sq"};

class Lamb : public RuleImplementation {
 public:
  explicit Lamb(const LambOptions& options) : options_(options) {
    check_fraction(kName, "beta1", options.beta1);
    check_fraction(kName, "beta2", options.beta2);
    check_non_negative(kName, "eps", options.eps);
    check_non_negative(kName, "weight_decay", options.weight_decay);
  }

  std::string_view name() const override { return kName; }
  std::string describe() const override {
    const LambOptions defaults;
    return Description(kName)
        .option("beta1", options_.beta1, defaults.beta1)
        .option("beta2", options_.beta2, defaults.beta2)
        .option("eps", options_.eps, defaults.eps)
        .option("weight decay", options_.weight_decay, defaults.weight_decay)
        .text();
  }
  std::span<const std::string_view> state_names() const override { return kState; }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    LambOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Lamb>(options);
  }

  bool layerwise() const override { return true; }
  void direct(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(lamb_direct_float)(options_, step, slice);
  }
  void direct(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(lamb_direct_double)(options_, step, slice);
  }
  double ratio(double parameter_norm, double direction_norm) const override {
    return trust_ratio(parameter_norm, direction_norm, 1, 0);
  }
  void apply(const Slice<float>& slice, const Step& step, double ratio) const override {
    HWY_DYNAMIC_DISPATCH(lamb_apply_float)(slice, step.learning_rate * ratio);
  }
  void apply(const Slice<double>& slice, const Step& step, double ratio) const override {
    HWY_DYNAMIC_DISPATCH(lamb_apply_double)(slice, step.learning_rate * ratio);
  }

 private:
  LambOptions options_;
};

}  // namespace

Rule lamb(LambOptions options) { return Rule(std::make_shared<Lamb>(options)); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
