#include "brigade/runtime/arithmetic.h"

#include <torch/version.h>

#include "brigade/runtime/blas.h"
#include "brigade/runtime/device.h"
#include "brigade/runtime/topology.h"

namespace brigade {

std::vector<std::pair<std::string, std::string>> arithmetic() {
  devices();  // which may choose other kernels of the BLAS
  const BlasInfo blas = blas_info();
  return {{"processor", processor_name()},
          {"blas", blas.kernels.empty() ? blas.name : blas.name + ", kernels for " + blas.kernels},
          {"libtorch", TORCH_VERSION}};
}

}  // namespace brigade
