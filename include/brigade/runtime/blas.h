// The BLAS behind libtorch's matrix products: which it is, how fast, and how many threads it may use.
//
// Debian's libtorch takes whichever BLAS the system's alternatives name, and a fresh machine gets the reference one,
// which computes ten times slower. So the runtime looks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace brigade {

struct BlasInfo {
  std::string name = {};     // "OpenBLAS 0.3.21", "MKL", "reference BLAS", or the library's file name
  std::string library = {};  // file that holds sgemm; empty when libtorch has its own inside
  std::string kernels = {};  // the processor that OpenBLAS computes for, by its name for it: "Zen"; empty for others
  bool is_reference = false;
};

BlasInfo blas_info();

// Best GFLOP/s of a 256 x 256 x 256 float product on the calling thread, over about 20 ms.
double measure_blas_gflops();

// Limits the BLAS to one thread for the whole process. Its pool is shared, so devices that left it several threads
// would queue for it. Returns false when the BLAS offers no way to say so.
bool make_blas_single_threaded();

// OpenBLAS takes its oldest kernels ("Prescott", SSE3) for a processor that is newer than itself, such as 0.3.21 for a Xeon of
// 2023, and a product takes five times as long. This makes it choose once more, among those it has for the instructions that
// this processor knows, and returns their name; empty, and nothing is done, where it knows the processor, the user has chosen
// (OPENBLAS_CORETYPE), or there is no such choice to make. Products are checked against plain loops before a choice stands. Children of this process inherit it by that variable. No other
// thread may be inside a product meanwhile.
std::string choose_blas_kernels();

// The kernels of OpenBLAS to take instead of `chosen`; empty for those.
struct ProcessorFeatures {
  bool is_amd = false;
  bool avx2 = false;
  bool avx512 = false;       // F, DQ, BW and VL
  bool avx512_bf16 = false;  // besides
};
std::string better_blas_kernels(std::string_view chosen, const ProcessorFeatures& processor);

// What to tell the user of a BLAS with this speed on one core; nothing when it is fast enough.
std::optional<std::string> slow_blas_warning(const BlasInfo& info, double gflops);

// Logs that warning, once, about the BLAS in use.
void warn_about_slow_blas();

}  // namespace brigade
