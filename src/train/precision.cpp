#include "precision.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace brigade::training {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool casts_now() { return at::autocast::is_autocast_enabled(at::kCPU); }
void set_casts(bool on) { at::autocast::set_autocast_enabled(at::kCPU, on); }
at::ScalarType type_now() { return at::autocast::get_autocast_dtype(at::kCPU); }
void set_type(at::ScalarType type) { at::autocast::set_autocast_dtype(at::kCPU, type); }
#else
bool casts_now() { return at::autocast::is_cpu_enabled(); }
void set_casts(bool on) { at::autocast::set_cpu_enabled(on); }
at::ScalarType type_now() { return at::autocast::get_autocast_cpu_dtype(); }
void set_type(at::ScalarType type) { at::autocast::set_autocast_cpu_dtype(type); }
#endif

}  // namespace

// Devices have the cache of casts off, so there is nothing to clear when a scope ends.
PrecisionScope::PrecisionScope(Precision precision) : casts_(precision == Precision::kBFloat16) {
  if (!casts_) return;
  before_ = casts_now();
  type_before_ = type_now();
  set_casts(true);
  set_type(at::kBFloat16);
}

PrecisionScope::~PrecisionScope() {
  if (!casts_) return;
  set_casts(before_);
  set_type(type_before_);
}

}  // namespace brigade::training
