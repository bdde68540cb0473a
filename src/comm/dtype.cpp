#include "brigade/comm/dtype.h"

#include <array>

namespace brigade::comm {
namespace {

struct Facts {
  std::string_view name;
  std::size_t size;
};

// In the order of the enumerators.
constexpr std::array<Facts, kDTypeCount> kFacts = {{
    {"bool", 1},
    {"uint8", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"complex64", 8},
    {"complex128", 16},
}};

static_assert(kFacts[static_cast<std::size_t>(DType::kComplex128)].name == "complex128");

const Facts& facts(DType dtype) noexcept { return kFacts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) noexcept { return facts(dtype).size; }
std::string_view name_of(DType dtype) noexcept { return facts(dtype).name; }

}  // namespace brigade::comm
