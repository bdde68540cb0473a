#include "brigade/optim/sgd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/sgd.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "optim/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct SgdLoop {
  SgdLoop(const SgdOptions& options, const Step& step)
      : learning_rate(static_cast<T>(step.learning_rate)),
        momentum(static_cast<T>(options.momentum)),
        gradient_share(static_cast<T>(1 - options.dampening)),
        weight_decay(static_cast<T>(options.weight_decay)),
        nesterov(options.nesterov),
        first(step.index == 0) {}

  template <class D, std::size_t kWritten>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& read, const std::array<T*, kWritten>& written) const {
    const auto p = hn::LoadU(d, written[0]);
    auto g = with_decay(d, hn::LoadU(d, read[0]), weight_decay, p);
    if constexpr (kWritten == 2) {
      auto v = g;
      if (!first) {
        v = hn::Add(hn::Mul(hn::Set(d, momentum), hn::LoadU(d, written[1])), hn::Mul(hn::Set(d, gradient_share), g));
      }
      hn::StoreU(v, d, written[1]);
      g = nesterov ? hn::Add(g, hn::Mul(hn::Set(d, momentum), v)) : v;
    }
    hn::StoreU(hn::Sub(p, hn::Mul(hn::Set(d, learning_rate), g)), d, written[0]);
  }

  T learning_rate;
  T momentum;
  T gradient_share;
  T weight_decay;
  bool nesterov;
  bool first;
};

template <class T>
void update(const SgdOptions& options, const Step& step, const Slice<T>& slice) {
  const SgdLoop<T> loop(options, step);
  slice.state.empty() ? update_vectors<0>(slice, step, loop) : update_vectors<1>(slice, step, loop);
}

void sgd_float(const SgdOptions& options, const Step& step, const Slice<float>& slice) { update(options, step, slice); }
void sgd_double(const SgdOptions& options, const Step& step, const Slice<double>& slice) {
  update(options, step, slice);
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "optim/implementation.h"
#include "optim/options.h"

namespace brigade::optim {
HWY_EXPORT(sgd_float);
HWY_EXPORT(sgd_double);

namespace {

constexpr std::string_view kName = "sgd";
constexpr std::array<std::string_view, 1> kState = {"momentum_buffer"};

class Sgd : public RuleImplementation {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {
    check_non_negative(kName, "momentum", options.momentum);
    check_non_negative(kName, "dampening", options.dampening);
    check_non_negative(kName, "weight_decay", options.weight_decay);
    if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
      throw InvalidArgument(
          fmt::format("{}: Nesterov's form needs a momentum above 0 and no dampening; they are {} and {}.", kName,
                      options.momentum, options.dampening));
    }
  }

  std::string_view name() const override { return kName; }
  std::string describe() const override {
    return Description(kName)
        .option("momentum", options_.momentum, 0)
        .option("dampening", options_.dampening, 0)
        .flag("nesterov", options_.nesterov)
        .option("weight decay", options_.weight_decay, 0)
        .text();
  }
  std::span<const std::string_view> state_names() const override {
    return std::span(kState).first(options_.momentum != 0 ? 1 : 0);
  }
  std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const override {
    SgdOptions options = options_;
    options.weight_decay = weight_decay;
    return std::make_shared<Sgd>(options);
  }

  bool layerwise() const override { return false; }
  void update(const Slice<float>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(sgd_float)(options_, step, slice);
  }
  void update(const Slice<double>& slice, const Step& step) const override {
    HWY_DYNAMIC_DISPATCH(sgd_double)(options_, step, slice);
  }

 private:
  SgdOptions options_;
};

}  // namespace

Rule sgd(SgdOptions options) { return Rule(std::make_shared<Sgd>(options)); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
