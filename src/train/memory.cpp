#include "memory.h"

#include <array>

#include "brigade/comm/reduce.h"

namespace brigade::training {

comm::DType dtype_of(at::ScalarType type) {
  return type == at::kDouble ? comm::DType::kFloat64 : comm::DType::kFloat32;
}

void add_in_place(const at::Tensor& sum, const at::Tensor& addend) {
  const std::array<std::span<const std::byte>, 2> both = {bytes_of(sum), bytes_of(addend)};
  comm::reduce({}, dtype_of(sum.scalar_type()), both, bytes_of(sum));
}

}  // namespace brigade::training
