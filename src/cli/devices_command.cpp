#include <ATen/Context.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <string>
#include <string_view>

#include "brigade/runtime/blas.h"
#include "brigade/runtime/device.h"
#include "brigade/runtime/topology.h"
#include "commands.h"
#include "version.h"

namespace brigade::cli {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// As the driver calls it, or nothing. Asked for at run time, since libtorch's own way needs CUDA's headers to compile.
std::string cuda_name(int index) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == nullptr) return {};
  const auto initialize = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto name_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  char name[256] = {};
  // A device's handle is its index.
  if (initialize == nullptr || name_of == nullptr || initialize(0) != 0 || name_of(name, sizeof name, index) != 0) {
    return {};
  }
  return name;
}

void print_cuda() {
  if (!at::hasCUDA()) {
    fmt::print("  CUDA       not in this libtorch\n");
    return;
  }
  const auto gpus = cuda_devices();
  fmt::print("  CUDA       {}\n", counted(gpus.size(), "device"));
  for (const Device& gpu : gpus) fmt::print("             {}  {}\n", to_string(gpu), cuda_name(gpu.index));
}

Exit run() {
  // First of all: creating the devices limits the BLAS to one thread, as in training, and warns when it is slow.
  const auto& cpus = devices();
  const MemoryInfo memory = memory_info();
  const BlasInfo blas = blas_info();
  const double gflops = measure_blas_gflops();

  fmt::print("{}\n", processor_name());
  fmt::print("  cores      {} usable\n", usable_cores());
  fmt::print("  memory     {:.1f} GiB, {:.1f} GiB free\n", static_cast<double>(memory.total_bytes) / kGibibyte,
             static_cast<double>(memory.available_bytes) / kGibibyte);
  fmt::print("  BLAS       {}{}, {:.0f} GFLOP/s on one core\n", blas.name,
             blas.kernels.empty() ? std::string() : fmt::format(" with kernels for {}", blas.kernels), gflops);
  if (!blas.library.empty()) fmt::print("             {}\n", blas.library);

  fmt::print("  CPU        {} ({}), {} inside operators\n", counted(cpus.size(), "device"),
             cpus.size() == 1 ? to_string(cpus.front())
                              : fmt::format("{} to {}", to_string(cpus.front()), to_string(cpus.back())),
             counted(static_cast<std::size_t>(intra_op_threads()), "thread"));
  print_cuda();
  fmt::print("  versions   brigade {}, libtorch {}\n", kVersion, TORCH_VERSION);
  return Exit::kSuccess;
}

}  // namespace

Command add_devices_command(CLI::App& program) {
  program.add_subcommand("devices",
                         "Show the cores, memory, BLAS and devices that training would use.\nExample: brigade devices");
  return run;
}

}  // namespace brigade::cli
