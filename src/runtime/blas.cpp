#include "brigade/runtime/blas.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "brigade/base/log.h"

namespace brigade {
namespace {

// A product below this on one core is the reference BLAS or as bad; OpenBLAS gives 100 to 180, an old laptop 30.
constexpr double kSlowGflops = 20.0;

template <class Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string library_of(void* symbol) {
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : path.string();
}

}  // namespace

BlasInfo blas_info() {
  BlasInfo info;
  // A process may hold OpenBLAS for LAPACK beside another BLAS, so the name is taken from the file that has sgemm.
  info.library = library_of(dlsym(RTLD_DEFAULT, "sgemm_"));
  if (info.library.find("openblas") != std::string::npos) {
    const auto config = find_symbol<const char*()>("openblas_get_config");
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ... Zen MAX_THREADS=64": the first two words are the name.
    const std::string text = config != nullptr ? config() : "OpenBLAS";
    info.name = text.substr(0, text.find(' ', text.find(' ') + 1));
    if (const auto core = find_symbol<const char*()>("openblas_get_corename")) info.kernels = core();
  } else if (info.library.find("mkl") != std::string::npos || find_symbol<void()>("mkl_get_version") != nullptr) {
    info.name = "MKL";
  } else if (info.library.find("/blas/libblas") != std::string::npos) {
    info.name = "reference BLAS";
    info.is_reference = true;
  } else if (info.library.empty()) {
    info.name = "built into libtorch";
  } else {
    info.name = std::filesystem::path(info.library).filename().string();
  }
  return info;
}

double measure_blas_gflops() {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kSize = 256;
  const at::Tensor a = at::ones({kSize, kSize}, at::kFloat);
  at::Tensor out = at::empty({kSize, kSize}, at::kFloat);
  at::mm_out(out, a, a);  // the first product loads the kernel and maps its buffers
  // The best of them is what the BLAS can do; the others were disturbed.
  double best = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(20);
  do {
    const auto start = Clock::now();
    at::mm_out(out, a, a);
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::max(best, 2.0 * kSize * kSize * kSize / took.count());
  } while (Clock::now() < end);
  return best;
}

namespace {

// Products of either dtype, of matrices as they are and transposed, against plain loops: old kernels have been wrong on
// processors that they were not made for.
bool products_are_right() {
  const at::NoGradGuard no_grad;
  for (const auto& [rows, inner, columns] :
       {std::array<std::int64_t, 3>{131, 129, 67}, {16, 784, 33}, {257, 31, 256}}) {
    const at::Tensor a = at::linspace(-1, 1, rows * inner, at::kDouble).cos().view({rows, inner});
    const at::Tensor b = at::linspace(2, -1, inner * columns, at::kDouble).sin().view({inner, columns});
    at::Tensor expected = at::zeros({rows, columns}, at::kDouble);
    const auto x = a.accessor<double, 2>(), y = b.accessor<double, 2>();
    auto sum = expected.accessor<double, 2>();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < inner; ++k) {
        for (std::int64_t j = 0; j < columns; ++j) sum[i][j] += x[i][k] * y[k][j];
      }
    }
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor left = a.to(type), right = b.to(type);
      const double tolerance = type == at::kFloat ? 1e-3 : 1e-9;
      for (const at::Tensor& one : {left, left.t().contiguous().t()}) {
        for (const at::Tensor& other : {right, right.t().contiguous().t()}) {
          if (!at::allclose(at::mm(one, other).to(at::kDouble), expected, tolerance, tolerance)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

std::string better_blas_kernels(std::string_view chosen, const ProcessorFeatures& processor) {
  // What it falls back to. Any other choice was made knowing the processor.
  if (chosen != "Prescott" || !processor.avx2) return {};
  if (processor.is_amd) return "Zen";
  if (processor.avx512_bf16) return "Cooperlake";
  return processor.avx512 ? "SkylakeX" : "Haswell";
}

std::string choose_blas_kernels() {
#if defined(__x86_64__)
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";  // read by gotoblas_dynamic_init()
  const auto name = find_symbol<const char*()>("openblas_get_corename");
  const auto forget = find_symbol<void()>("gotoblas_dynamic_quit");
  const auto choose = find_symbol<void()>("gotoblas_dynamic_init");
  if (name == nullptr || forget == nullptr || choose == nullptr || std::getenv(kVariable) != nullptr) return {};
  const ProcessorFeatures processor = {
      .is_amd = __builtin_cpu_is("amd") != 0,
      .avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
      .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"),
      .avx512_bf16 = __builtin_cpu_supports("avx512bf16") != 0};
  const std::string better = better_blas_kernels(name(), processor);
  if (better.empty()) return {};
  const auto take = [&] {
    forget();
    choose();
  };
  for (const std::string& kernels : {better, std::string("Haswell")}) {
    setenv(kVariable, kernels.c_str(), 1);
    take();
    if (name() == kernels && products_are_right()) return kernels;
  }
  unsetenv(kVariable);
  take();
  return {};
#else
  return {};
#endif
}

bool make_blas_single_threaded() {
  if (const auto set_threads = find_symbol<void(int)>("openblas_set_num_threads")) {
    set_threads(1);
    return true;
  }
  if (const auto set_threads = find_symbol<void(int)>("MKL_Set_Num_Threads")) {
    set_threads(1);
    return true;
  }
  return false;
}

std::optional<std::string> slow_blas_warning(const BlasInfo& info, double gflops) {
  if (!info.is_reference && gflops >= kSlowGflops) return std::nullopt;
  if (info.is_reference) {
    return "matrix products run on the reference BLAS, about ten times slower than need be. On Debian: apt-get install "
           "libopenblas0-pthread";
  }
  return fmt::format(
      "matrix products run at {:.0f} GFLOP/s on one core with {}, which is slow: the machine may be busy, or "
      "the BLAS a poor one for it (brigade devices shows it; OpenBLAS and MKL are fast)",
      gflops, info.name);
}

void warn_about_slow_blas() {
  const BlasInfo info = blas_info();
  if (const auto warning = slow_blas_warning(info, info.is_reference ? 0.0 : measure_blas_gflops())) {
    log::warn_once("slow-blas", *warning);
  }
}

}  // namespace brigade
