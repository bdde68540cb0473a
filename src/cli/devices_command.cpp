#include <ATen/Context.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "brigade/runtime/blas.h"
#include "brigade/runtime/device.h"
#include "brigade/runtime/topology.h"
#include "commands.h"
#include "version.h"

namespace brigade::cli {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

Exit run() {
  const MemoryInfo memory = memory_info();
  // Before the devices exist, which would limit the BLAS and say the same about it in a warning.
  make_blas_single_threaded();
  const BlasInfo blas = blas_info();
  const double gflops = measure_blas_gflops();

  fmt::print("{}\n", processor_name());
  fmt::print("  cores      {} usable\n", usable_cores());
  fmt::print("  memory     {:.1f} GiB, {:.1f} GiB free\n", static_cast<double>(memory.total_bytes) / kGibibyte,
             static_cast<double>(memory.available_bytes) / kGibibyte);
  fmt::print("  BLAS       {}, {:.0f} GFLOP/s on one core{}\n", blas.name, gflops,
             blas.is_reference ? " (slow: apt-get install libopenblas0-pthread)" : "");
  if (!blas.library.empty()) fmt::print("             {}\n", blas.library);

  const auto& cpus = devices();
  fmt::print("  devices    {} ({} to {}), {} thread{} inside operators\n", cpus.size(), to_string(cpus.front()),
             to_string(cpus.back()), intra_op_threads(), intra_op_threads() == 1 ? "" : "s");
  const auto gpus = cuda_devices();
  fmt::print("  CUDA       {}\n", gpus.empty() ? (at::hasCUDA() ? "no devices" : "not in this libtorch")
                                               : fmt::format("{} devices", gpus.size()));
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
