#include "runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "brigade/base/environment.h"
#include "brigade/base/error.h"
#include "brigade/base/log.h"
#include "brigade/runtime/blas.h"
#include "brigade/runtime/topology.h"

namespace brigade {
namespace {

std::mutex choice_mutex;
int chosen_devices = 0;  // by set_cpu_devices(); 0: not chosen
bool devices_exist = false;

[[noreturn]] void throw_too_few_threads(int started, int wanted, const std::system_error& error) {
  throw InvalidArgument(
      fmt::format("only {} of {} devices could be started: no more threads are allowed ({}). Ask for fewer devices, "
                  "or raise the limit on processes",
                  started, wanted, error.what()));
}

// glibc gives large blocks back to the kernel at every free and maps them anew at the next allocation: hundreds of page
// faults a step. Kept, they are reused.
void keep_large_allocations() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// A thread that cannot be pinned computes all the same.
void pin_thread(const Device& device) noexcept {
  static const std::vector<int> processors = allowed_processors();
  if (processors.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[static_cast<std::size_t>(device.index) % processors.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

Runtime& Runtime::instance() {
  // Leaked on purpose: worker threads outlive the destructors of statics.
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() : cores_(usable_cores()) {
  const Environment& settings = environment();
  // Until the devices exist or failed to, nobody else chooses.
  const std::lock_guard lock(choice_mutex);
  const int count = chosen_devices > 0 ? chosen_devices : settings.cpu_devices.value_or(cores_);
  intra_op_threads_ = settings.intra_op_threads.value_or(std::max(1, cores_ / count));

  keep_large_allocations();
  if (const std::string kernels = choose_blas_kernels(); !kernels.empty())
    log::debug(fmt::format("OpenBLAS does not know this processor; it computes with its kernels for {} now", kernels));
  make_blas_single_threaded();
  warn_about_slow_blas();

  slots_ = std::vector<Slot>(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) {
    const Device device{DeviceKind::kCpu, index};
    devices_.push_back(device);
    if (index == 0) continue;
    try {
      slots_[static_cast<std::size_t>(index)].worker =
          new Worker([device, threads = intra_op_threads_]() noexcept { become(device, threads); });
    } catch (const std::system_error& error) {
      throw_too_few_threads(index, count, error);
    }
  }
  devices_exist = true;
  chosen_devices = count;
  log::debug(fmt::format("{} CPU devices on {} cores, {} threads inside operators", count, cores_, intra_op_threads_));
}

void set_thread_intra_op(int threads) {
  if (at::get_num_threads() == threads) return;  // also makes libtorch's own first-use set-up of the thread come first
  static const auto omp_set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (omp_set != nullptr) {
    omp_set(threads);
  } else {
    at::set_num_threads(threads);
  }
}

void Runtime::become(const Device& device, int threads) noexcept {
  set_thread_intra_op(threads);
  if (environment().pin_threads) pin_thread(device);
}

Runtime::Borrowed::Borrowed(Runtime& runtime, const Device& device) noexcept
    : intra_op_threads_(at::get_num_threads()), pinned_(environment().pin_threads) {
  set_thread_intra_op(runtime.intra_op_threads());
  // Not without knowing what to give back.
  if (pinned_) pinned_ = sched_getaffinity(0, sizeof affinity_, &affinity_) == 0;
  if (pinned_) pin_thread(device);
}

Runtime::Borrowed::~Borrowed() {
  set_thread_intra_op(intra_op_threads_);
  if (pinned_) sched_setaffinity(0, sizeof affinity_, &affinity_);
}

Runtime::Lease::Lease(Runtime& runtime, std::span<const Device> devices, c10::function_ref<std::string()> what) {
  c10::SmallVector<int, 8> order;
  order.reserve(devices.size());
  for (const Device& device : devices) order.push_back(device.index);
  std::sort(order.begin(), order.end());
  locks_.reserve(order.size());
  const std::chrono::milliseconds patience = environment().deadline;
  for (const int index : order) {
    auto& lock = locks_.emplace_back(runtime.slots_[static_cast<std::size_t>(index)].busy, std::try_to_lock);
    if (lock.owns_lock() || lock.try_lock_for(patience)) continue;
    log::warn(fmt::format(
        "{} has waited {:.3g} s for {}, which runs another pmap. If the body of that one waits "
        "for this call, neither can go on: make it outside of bodies, or do not wait for it there",
        what(), std::chrono::duration<double>(patience).count(), to_string(Device{DeviceKind::kCpu, index})));
    lock.lock();
  }
}

std::string to_string(const Device& device) {
  return fmt::format("{}:{}", device.kind == DeviceKind::kCpu ? "cpu" : "cuda", device.index);
}

const std::vector<Device>& devices() { return Runtime::instance().devices(); }

std::vector<Device> cuda_devices() {
  std::vector<Device> found;
  if (!at::hasCUDA()) return found;
  const int count = static_cast<int>(at::detail::getCUDAHooks().getNumGPUs());
  for (int index = 0; index < count; ++index) found.push_back({DeviceKind::kCuda, index});
  return found;
}

std::int64_t local_device_count() { return static_cast<std::int64_t>(devices().size()); }

std::int64_t device_count() { return local_device_count(); }

void set_cpu_devices(int count) {
  if (count < 1 || count > kMaximumCpuDevices) {
    throw InvalidArgument(fmt::format("{} devices cannot be had: ask for 1 to {}", count, kMaximumCpuDevices));
  }
  const std::lock_guard lock(choice_mutex);
  if (devices_exist && count != chosen_devices) {
    throw InvalidArgument(
        fmt::format("the devices exist already, {} of them, and stay: call set_cpu_devices({}) before the "
                    "first use of devices, or set BRIGADE_CPU_DEVICES={}",
                    chosen_devices, count, count));
  }
  chosen_devices = count;
}

int intra_op_threads() { return Runtime::instance().intra_op_threads(); }

}  // namespace brigade
