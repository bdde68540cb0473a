#include "brigade/optim/adam.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/adam.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <cmath>

#include "optim/lanes-inl.h"
#include "optim/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct AdamLoop {
  AdamLoop(const AdamOptions& options, bool is_decoupled, const Step& step)
      : moments(options.beta1, options.beta2, step.index),
        step_size(static_cast<T>(step.learning_rate / moments.first_correction)),
        root_scale(static_cast<T>(1 / std::sqrt(moments.second_correction))),
        eps(static_cast<T>(options.eps)),
        added_decay(static_cast<T>(is_decoupled ? 0 : options.weight_decay)),
        kept(static_cast<T>(is_decoupled ? 1 - step.learning_rate * options.weight_decay : 1)) {}

  // Written are parameters, exp_avg, exp_avg_sq and with amsgrad max_exp_avg_sq.
  template <class D, std::size_t kWritten>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& read, const std::array<T*, kWritten>& written) const {
    auto p = hn::LoadU(d, written[0]);
    const auto g = with_decay(d, hn::LoadU(d, read[0]), added_decay, p);
    const auto m = moments.update_first(d, g, written[1]);
    auto u = moments.update_second(d, g, written[2]);
    if constexpr (kWritten == 4) {
      const auto highest = load_state(d, written[3], moments.starts, T{0});
      u = hn::IfThenElse(hn::Lt(u, highest), highest, u);
      hn::StoreU(u, d, written[3]);
    }
    const auto root = hn::Add(hn::Mul(hn::Sqrt(u), hn::Set(d, root_scale)), hn::Set(d, eps));
    if (kept != 1) p = hn::Mul(p, hn::Set(d, kept));
    hn::StoreU(hn::Sub(p, hn::Div(hn::Mul(hn::Set(d, step_size), m), root)), d, written[0]);
  }

  Moments<T> moments;
  T step_size;
  T root_scale;
  T eps;
  T added_decay;  // Adam's, as part of the gradient
  T kept;         // what AdamW's decay leaves of the parameters
};

template <class T>
void update(const AdamOptions& options, bool is_decoupled, const Step& step, const Slice<T>& slice) {
  const AdamLoop<T> loop(options, is_decoupled, step);
  options.amsgrad ? update_vectors<3>(slice, step, loop) : update_vectors<2>(slice, step, loop);
}

void adam_float(const AdamOptions& options, bool is_decoupled, const Step& step, const Slice<float>& slice) {
  update(options, is_decoupled, step, slice);
}
void adam_double(const AdamOptions& options, bool is_decoupled, const Step& step, const Slice<double>& slice) {
  update(options, is_decoupled, step, slice);
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "optim/implementation.h"
#include "optim/options.h"

namespace brigade::optim {
HWY_EXPORT(adam_float);
HWY_EXPORT(adam_double);

namespace {

constexpr std::array<std::string_view, 3> kState = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

enum class Decay { kAdded, kDecoupled };  // to the gradient, or from the parameters: adam and adamw

class Adam : public RuleImplementation {
 public:
  Adam(const AdamOptions& options, Decay decay) : options_(options), decay_(decay) {
    check_fraction(name(), "beta1", options.beta1);
    check_fraction(name(), "beta2", options.beta2);
    check_non_negative(name(), "eps", options.eps);
    check_non_negative(name(), "weight_decay", options.weight_decay);
  }

  std::string_view name() const final { return is_decoupled() ? "adamw" : "adam"; }
  std::string describe() const override {
    const AdamOptions defaults;
    return Description(name())
        .option("beta1", options_.beta1, defaults.beta1)
        .option("beta2", options_.beta2, defaults.beta2)
        .option("eps", options_.eps, defaults.eps)
        .option("weight decay", options_.weight_decay,
                is_decoupled() ? AdamWOptions().weight_decay : defaults.weight_decay)
        .flag("amsgrad", options_.amsgrad)
        .text();
  }
  std::span<const std::string_view> state_names() const override {
    return std::span(kState).first(options_.amsgrad ? 3 : 2);
  }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    AdamOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Adam>(options, decay_);
  }

  bool layerwise() const override { return false; }
  void update(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(adam_float)(options_, is_decoupled(), step, slice);
  }
  void update(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(adam_double)(options_, is_decoupled(), step, slice);
  }

 private:
  bool is_decoupled() const { return decay_ == Decay::kDecoupled; }

  AdamOptions options_;
  Decay decay_;
};

}  // namespace

Rule adam(AdamOptions options) { return Rule(std::make_shared<Adam>(options, Decay::kAdded)); }

Rule adamw(AdamWOptions options) {
  return Rule(std::make_shared<Adam>(AdamOptions{.beta1 = options.beta1,
                                                 .beta2 = options.beta2,
                                                 .eps = options.eps,
                                                 .weight_decay = options.weight_decay,
                                                 .amsgrad = options.amsgrad},
                                     Decay::kDecoupled));
}

}  // namespace brigade::optim
#endif  // HWY_ONCE
