#include "precision.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace brigade::training {
namespace {

constexpr std::array kDevices = {at::kCPU, at::kCUDA};

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool casts_now(at::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void set_casts(at::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
at::ScalarType type_now(at::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void set_type(at::DeviceType device, at::ScalarType type) { at::autocast::set_autocast_dtype(device, type); }
#else
bool casts_now(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void set_casts(at::DeviceType device, bool on) {
  device == at::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}
at::ScalarType type_now(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype() : at::autocast::get_autocast_gpu_dtype();
}
void set_type(at::DeviceType device, at::ScalarType type) {
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(type) : at::autocast::set_autocast_gpu_dtype(type);
}
#endif

}  // namespace

AutocastState AutocastState::current() {
  AutocastState state;
  for (std::size_t i = 0; i < kDevices.size(); ++i)
    state.casts_[i] = {.on = casts_now(kDevices[i]), .type = type_now(kDevices[i])};
  return state;
}

AutocastState AutocastState::with_cpu(at::ScalarType type) const {
  AutocastState state = *this;
  state.casts_[0] = {.on = true, .type = type};
  return state;
}

void AutocastState::apply() const {
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    set_casts(kDevices[i], casts_[i].on);
    set_type(kDevices[i], casts_[i].type);
  }
}

AutocastScope::AutocastScope(const AutocastState& state)
    : before_(AutocastState::current()), kept_casts_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
  state.apply();
}

AutocastScope::~AutocastScope() {
  before_.apply();
  at::autocast::set_autocast_cache_enabled(kept_casts_);
}

PrecisionScope::PrecisionScope(Precision precision) {
  if (precision == Precision::kBFloat16) casts_.emplace(AutocastState::current().with_cpu(at::kBFloat16));
}

}  // namespace brigade::training
