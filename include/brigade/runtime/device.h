// Devices of this process, in the order in which pmap uses them.
//
// A CPU device is a thread that is created once and kept; device 0 is the calling thread itself. By default there is
// one per core that the process may use; more may be asked for than there are cores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  // among the devices of its kind in this process

  friend bool operator==(const Device&, const Device&) = default;
};

std::string to_string(const Device& device);  // "cpu:0", "cuda:1"

// The devices that pmap uses by default. The first call, of this or of anything that needs devices, creates them.
const std::vector<Device>& devices();

// CUDA devices that libtorch sees; empty without CUDA.
std::vector<Device> cuda_devices();

// Devices of all processes, and of this one.
std::int64_t device_count();
std::int64_t local_device_count();

inline constexpr int kMaximumCpuDevices = 1024;

// Chooses the number of CPU devices, before first use. It overrides BRIGADE_CPU_DEVICES, and may exceed the cores.
// Throws InvalidArgument when count is not from 1 to kMaximumCpuDevices, or when the devices exist already in another number.
void set_cpu_devices(int count);

// Threads that one operator may use inside a device: cores / devices, at least 1, or BRIGADE_INTRA_OP_THREADS. The BLAS
// always uses one.
int intra_op_threads();

}  // namespace brigade
