#include "caller_state.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace brigade {
namespace {

// MXCSR: flushing to zero, rounding and which exceptions trap; without the flags that say what has happened.
#if defined(__SSE__)
constexpr unsigned kControlBits = 0xffc0;

unsigned read_vector_control() { return _mm_getcsr() & kControlBits; }
void write_vector_control(unsigned control) { _mm_setcsr((_mm_getcsr() & ~kControlBits) | control); }
#else
unsigned read_vector_control() { return 0; }
void write_vector_control(unsigned) {}
#endif

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
at::ScalarType read_autocast_dtype() { return at::autocast::get_autocast_dtype(at::kCPU); }
void write_autocast_dtype(at::ScalarType dtype) { at::autocast::set_autocast_dtype(at::kCPU, dtype); }
#else
at::ScalarType read_autocast_dtype() { return at::autocast::get_autocast_cpu_dtype(); }
void write_autocast_dtype(at::ScalarType dtype) { at::autocast::set_autocast_cpu_dtype(dtype); }
#endif

}  // namespace

AutocastCacheOff::AutocastCacheOff() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastCacheOff::~AutocastCacheOff() { at::autocast::set_autocast_cache_enabled(before_); }

ComputeSettings ComputeSettings::current() { return {read_autocast_dtype(), std::fegetround(), read_vector_control()}; }

void ComputeSettings::apply() const {
  write_autocast_dtype(autocast_dtype);
  std::fesetround(rounding);
  write_vector_control(vector_control);
}

CallerState::Lent::Lent(const CallerState& state) : guard_(state.torch_), before_(ComputeSettings::current()) {
  state.settings_.apply();
}

CallerState::Kept::Kept()
    : dispatch_(c10::impl::tls_local_dispatch_key_set()),
      autograd_(c10::AutogradState::get_tls_state()),
      settings_(ComputeSettings::current()) {}

CallerState::Kept::~Kept() {
  c10::impl::_force_tls_local_dispatch_key_set(dispatch_);
  c10::AutogradState::set_tls_state(autograd_);
  settings_.apply();
}

}  // namespace brigade
