#include "brigade/optim/lars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/lars.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "optim/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct LarsDirection {
  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& parameters, const std::array<T*, 1>& gradient) const {
    const auto u = with_decay(d, hn::LoadU(d, gradient[0]), weight_decay, hn::LoadU(d, parameters[0]));
    hn::StoreU(u, d, gradient[0]);
  }

  T weight_decay;
};

template <class T>
struct LarsUpdate {
  LarsUpdate(const LarsOptions& options, const Step& step, double ratio)
      : scale(static_cast<T>(step.learning_rate * ratio)),
        momentum(static_cast<T>(options.momentum)),
        nesterov(options.nesterov),
        first(step.index == 0) {}

  // Written are parameters and with momentum momentum_buffer.
  template <class D, std::size_t kWritten>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& direction,
                             const std::array<T*, kWritten>& written) const {
    auto step = hn::Mul(hn::Set(d, scale), hn::LoadU(d, direction[0]));
    if constexpr (kWritten == 2) {
      auto v = step;
      if (!first) v = hn::Add(hn::Mul(hn::Set(d, momentum), hn::LoadU(d, written[1])), step);
      hn::StoreU(v, d, written[1]);
      step = nesterov ? hn::Add(step, hn::Mul(hn::Set(d, momentum), v)) : v;
    }
    hn::StoreU(hn::Sub(hn::LoadU(d, written[0]), step), d, written[0]);
  }

  T scale;
  T momentum;
  bool nesterov;
  bool first;
};

template <class T>
void apply(const LarsOptions& options, const Step& step, const Slice<T>& slice, double ratio) {
  const LarsUpdate<T> loop(options, step, ratio);
  slice.state.empty() ? apply_vectors<0>(slice, loop) : apply_vectors<1>(slice, loop);
}

void lars_direct_float(const LarsOptions& options, const Step& step, const Slice<float>& slice) {
  direct_vectors<0>(slice, step, LarsDirection<float>{static_cast<float>(options.weight_decay)});
}
void lars_direct_double(const LarsOptions& options, const Step& step, const Slice<double>& slice) {
  direct_vectors<0>(slice, step, LarsDirection<double>{options.weight_decay});
}
void lars_apply_float(const LarsOptions& options, const Step& step, const Slice<float>& slice, double ratio) {
  apply(options, step, slice, ratio);
}
void lars_apply_double(const LarsOptions& options, const Step& step, const Slice<double>& slice, double ratio) {
  apply(options, step, slice, ratio);
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "brigade/base/error.h"
#include "optim/implementation.h"
#include "optim/options.h"
#include "optim/trust_ratio.h"

namespace brigade::optim {
HWY_EXPORT(lars_direct_float);
HWY_EXPORT(lars_direct_double);
HWY_EXPORT(lars_apply_float);
HWY_EXPORT(lars_apply_double);

namespace {

constexpr std::string_view kName = "lars";
constexpr std::array<std::string_view, 1> kState = {"momentum_buffer"};

class Lars : public RuleImplementation {
 public:
  explicit Lars(const LarsOptions& options) : options_(options) {
    check_non_negative(kName, "momentum", options.momentum);
    check_non_negative(kName, "weight_decay", options.weight_decay);
    check_non_negative(kName, "trust_coefficient", options.trust_coefficient);
    check_non_negative(kName, "eps", options.eps);
    if (options.nesterov && options.momentum == 0) {
      throw InvalidArgument("lars: Nesterov's form needs a momentum above 0.");
    }
  }

  std::string_view name() const override { return kName; }
  std::string describe() const override {
    const LarsOptions defaults;
    return Description(kName)
        .option("momentum", options_.momentum, defaults.momentum)
        .flag("nesterov", options_.nesterov)
        .option("trust coefficient", options_.trust_coefficient, defaults.trust_coefficient)
        .option("eps", options_.eps, defaults.eps)
        .option("weight decay", options_.weight_decay, defaults.weight_decay)
        .text();
  }
  std::span<const std::string_view> state_names() const override {
    return std::span(kState).first(options_.momentum != 0 ? 1 : 0);
  }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    LarsOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Lars>(options);
  }

  bool layerwise() const override { return true; }
  void direct(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(lars_direct_float)(options_, step, slice);
  }
  void direct(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(lars_direct_double)(options_, step, slice);
  }
  double ratio(double parameter_norm, double direction_norm) const override {
    return trust_ratio(parameter_norm, direction_norm, options_.trust_coefficient, options_.eps);
  }
  void apply(const Slice<float>& slice, const Step& step, double ratio) const override {
    HWY_DYNAMIC_DISPATCH(lars_apply_float)(options_, step, slice, ratio);
  }
  void apply(const Slice<double>& slice, const Step& step, double ratio) const override {
    HWY_DYNAMIC_DISPATCH(lars_apply_double)(options_, step, slice, ratio);
  }

 private:
  LarsOptions options_;
};

}  // namespace

Rule lars(LarsOptions options) { return Rule(std::make_shared<Lars>(options)); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
