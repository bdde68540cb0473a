#include "brigade/optim/adagrad.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/adagrad.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "optim/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct AdagradLoop {
  AdagradLoop(const AdagradOptions& options, const Step& step)
      : step_size(static_cast<T>(step.learning_rate / (1 + static_cast<double>(step.index) * options.lr_decay))),
        weight_decay(static_cast<T>(options.weight_decay)),
        eps(static_cast<T>(options.eps)),
        initial_sum(static_cast<T>(options.initial_accumulator_value)),
        first(step.index == 0) {}

  // Written are parameters and sum.
  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& read, const std::array<T*, 2>& written) const {
    const auto p = hn::LoadU(d, written[0]);
    const auto g = with_decay(d, hn::LoadU(d, read[0]), weight_decay, p);
    const auto sum = hn::Add(load_state(d, written[1], first, initial_sum), hn::Mul(g, g));
    hn::StoreU(sum, d, written[1]);
    const auto root = hn::Add(hn::Sqrt(sum), hn::Set(d, eps));
    hn::StoreU(hn::Sub(p, hn::Div(hn::Mul(hn::Set(d, step_size), g), root)), d, written[0]);
  }

  T step_size;
  T weight_decay;
  T eps;
  T initial_sum;
  bool first;
};

void adagrad_float(const AdagradOptions& options, const Step& step, const Slice<float>& slice) {
  update_vectors<1>(slice, step, AdagradLoop<float>(options, step));
}
void adagrad_double(const AdagradOptions& options, const Step& step, const Slice<double>& slice) {
  update_vectors<1>(slice, step, AdagradLoop<double>(options, step));
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "optim/implementation.h"
#include "optim/options.h"

namespace brigade::optim {
HWY_EXPORT(adagrad_float);
HWY_EXPORT(adagrad_double);

namespace {

constexpr std::string_view kName = "adagrad";
constexpr std::array<std::string_view, 1> kState = {"sum"};

class Adagrad : public RuleImplementation {
 public:
  explicit Adagrad(const AdagradOptions& options) : options_(options) {
    check_non_negative(kName, "lr_decay", options.lr_decay);
    check_non_negative(kName, "weight_decay", options.weight_decay);
    check_non_negative(kName, "initial_accumulator_value", options.initial_accumulator_value);
    check_non_negative(kName, "eps", options.eps);
  }

  std::string_view name() const override { return kName; }
  std::string describe() const override {
    const AdagradOptions defaults;
    return Description(kName)
        .option("lr_decay", options_.lr_decay, defaults.lr_decay)
        .option("initial accumulator value", options_.initial_accumulator_value, defaults.initial_accumulator_value)
        .option("eps", options_.eps, defaults.eps)
        .option("weight decay", options_.weight_decay, defaults.weight_decay)
        .text();
  }
  std::span<const std::string_view> state_names() const override { return kState; }
  double initial_value(std::size_t /*state*/) const override { return options_.initial_accumulator_value; }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    AdagradOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Adagrad>(options);
  }

  bool layerwise() const override { return false; }
  void update(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(adagrad_float)(options_, step, slice);
  }
  void update(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(adagrad_double)(options_, step, slice);
  }

 private:
  AdagradOptions options_;
};

}  // namespace

Rule adagrad(AdagradOptions options) { return Rule(std::make_shared<Adagrad>(options)); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
