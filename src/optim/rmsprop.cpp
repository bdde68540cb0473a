#include "brigade/optim/rmsprop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/rmsprop.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "optim/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

// Written are parameters and square_avg, with kMomentum momentum_buffer, with kCentered grad_avg.
template <class T, bool kMomentum, bool kCentered>
struct RmspropLoop {
  static constexpr std::size_t kStates = 1 + (kMomentum ? 1 : 0) + (kCentered ? 1 : 0);

  RmspropLoop(const RmspropOptions& options, const Step& step)
      : learning_rate(static_cast<T>(step.learning_rate)),
        alpha(static_cast<T>(options.alpha)),
        share(static_cast<T>(1 - options.alpha)),
        eps(static_cast<T>(options.eps)),
        weight_decay(static_cast<T>(options.weight_decay)),
        momentum(static_cast<T>(options.momentum)),
        first(step.index == 0) {}

  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& read,
                             const std::array<T*, 1 + kStates>& written) const {
    const auto p = hn::LoadU(d, written[0]);
    const auto g = with_decay(d, hn::LoadU(d, read[0]), weight_decay, p);
    auto s = mean(d, written[1], hn::Mul(hn::Mul(hn::Set(d, share), g), g));
    if constexpr (kCentered) {
      const auto a = mean(d, written[kStates], hn::Mul(hn::Set(d, share), g));
      s = hn::Sub(s, hn::Mul(a, a));
      s = hn::IfThenElse(hn::Lt(s, hn::Zero(d)), hn::Zero(d), s);
    }
    auto step = hn::Div(g, hn::Add(hn::Sqrt(s), hn::Set(d, eps)));
    if constexpr (kMomentum) {
      step = hn::Add(hn::Mul(hn::Set(d, momentum), load_state(d, written[2], first, T{0})), step);
      hn::StoreU(step, d, written[2]);
    }
    hn::StoreU(hn::Sub(p, hn::Mul(hn::Set(d, learning_rate), step)), d, written[0]);
  }

  template <class D>
  HWY_INLINE hn::Vec<D> mean(D d, T* state, hn::Vec<D> added) const {
    const auto value = hn::Add(hn::Mul(hn::Set(d, alpha), load_state(d, state, first, T{0})), added);
    hn::StoreU(value, d, state);
    return value;
  }

  T learning_rate;
  T alpha;
  T share;  // 1 - alpha
  T eps;
  T weight_decay;
  T momentum;
  bool first;
};

template <bool kMomentum, bool kCentered, class T>
void update_as(const RmspropOptions& options, const Step& step, const Slice<T>& slice) {
  using Loop = RmspropLoop<T, kMomentum, kCentered>;
  update_vectors<Loop::kStates>(slice, step, Loop(options, step));
}

template <class T>
void update(const RmspropOptions& options, const Step& step, const Slice<T>& slice) {
  if (options.momentum != 0) {
    options.centered ? update_as<true, true>(options, step, slice) : update_as<true, false>(options, step, slice);
  } else {
    options.centered ? update_as<false, true>(options, step, slice) : update_as<false, false>(options, step, slice);
  }
}

void rmsprop_float(const RmspropOptions& options, const Step& step, const Slice<float>& slice) {
  update(options, step, slice);
}
void rmsprop_double(const RmspropOptions& options, const Step& step, const Slice<double>& slice) {
  update(options, step, slice);
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "optim/implementation.h"
#include "optim/options.h"

namespace brigade::optim {
HWY_EXPORT(rmsprop_float);
HWY_EXPORT(rmsprop_double);

namespace {

constexpr std::string_view kName = "rmsprop";
constexpr std::array<std::string_view, 3> kAllState = {"square_avg", "momentum_buffer", "grad_avg"};
constexpr std::array<std::string_view, 2> kStateWithoutMomentum = {"square_avg", "grad_avg"};

class Rmsprop : public RuleImplementation {
 public:
  explicit Rmsprop(const RmspropOptions& options) : options_(options) {
    check_fraction(kName, "alpha", options.alpha);
    check_non_negative(kName, "eps", options.eps);
    check_non_negative(kName, "weight_decay", options.weight_decay);
    check_non_negative(kName, "momentum", options.momentum);
  }

  std::string_view name() const override { return kName; }
  std::string describe() const override {
    const RmspropOptions defaults;
    return Description(kName)
        .option("alpha", options_.alpha, defaults.alpha)
        .option("eps", options_.eps, defaults.eps)
        .option("momentum", options_.momentum, defaults.momentum)
        .flag("centered", options_.centered)
        .option("weight decay", options_.weight_decay, defaults.weight_decay)
        .text();
  }
  std::span<const std::string_view> state_names() const override {
    const std::size_t centered = options_.centered ? 1 : 0;
    if (options_.momentum != 0) return std::span(kAllState).first(2 + centered);
    return std::span(kStateWithoutMomentum).first(1 + centered);
  }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    RmspropOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Rmsprop>(options);
  }

  bool layerwise() const override { return false; }
  void update(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(rmsprop_float)(options_, step, slice);
  }
  void update(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(rmsprop_double)(options_, step, slice);
  }

 private:
  RmspropOptions options_;
};

}  // namespace

Rule rmsprop(RmspropOptions options) { return Rule(std::make_shared<Rmsprop>(options)); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
