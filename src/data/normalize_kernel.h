// The vector loop of normalize(), free of torch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brigade::data::kernels {

// values[i] = bytes[i] * scale + shift, rounded twice.
void scale_bytes(const std::uint8_t* bytes, std::size_t count, float scale, float shift, float* values);

}  // namespace brigade::data::kernels
