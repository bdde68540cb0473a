// The BLAS behind libtorch's matrix products: which it is, how fast, and how many threads it may use.
//
// Debian's libtorch takes whichever BLAS the system's alternatives name, and a fresh machine gets the reference one,
// which computes ten times slower. So the runtime looks.
#pragma once

#include <optional>
#include <string>

namespace brigade {

struct BlasInfo {
  std::string name = {};     // "OpenBLAS 0.3.21", "MKL", "reference BLAS", or the library's file name
  std::string library = {};  // file that holds sgemm; empty when libtorch has its own inside
  bool is_reference = false;
};

BlasInfo blas_info();

// Best GFLOP/s of a 256 x 256 x 256 float product on the calling thread, over about 20 ms.
double measure_blas_gflops();

// Limits the BLAS to one thread for the whole process. Its pool is shared, so devices that left it several threads
// would queue for it. Returns false when the BLAS offers no way to say so.
bool make_blas_single_threaded();

// What to tell the user of a BLAS with this speed on one core; nothing when it is fast enough.
std::optional<std::string> slow_blas_warning(const BlasInfo& info, double gflops);

// Logs that warning, once, about the BLAS in use.
void warn_about_slow_blas();

}  // namespace brigade
