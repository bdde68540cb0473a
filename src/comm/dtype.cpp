#include "brigade/comm/dtype.h"

#include <array>

namespace brigade::comm {
namespace {

struct Facts {
  std::string_view name;
  std::size_t size;
  bool reducible;
};

// In the order of the enumerators.
constexpr std::array<Facts, 12> kFacts = {{
    {"bool", 1, false},
    {"uint8", 1, false},
    {"int8", 1, false},
    {"int16", 2, false},
    {"int32", 4, true},
    {"int64", 8, true},
    {"float16", 2, false},
    {"bfloat16", 2, false},
    {"float32", 4, true},
    {"float64", 8, true},
    {"complex64", 8, false},
    {"complex128", 16, false},
}};

static_assert(kFacts[static_cast<std::size_t>(DType::kComplex128)].name == "complex128");

const Facts& facts(DType dtype) noexcept { return kFacts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) noexcept { return facts(dtype).size; }
std::string_view name_of(DType dtype) noexcept { return facts(dtype).name; }
bool is_reducible(DType dtype) noexcept { return facts(dtype).reducible; }

}  // namespace brigade::comm
