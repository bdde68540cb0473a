// Recorded cases: values that other software computed, which tests compare ours with.
//
// They lie in tests/cases/; the environment variable BRIGADE_CASES names another folder of the same layout, for
// instance one made from another seed.
#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <string>

namespace brigade::cases {

// The parsed file `name`, such as "jax/random.json". Throws std::runtime_error, naming the path, when there is none.
nlohmann::json load(const std::string& name);

// The tensor that {"dtype", "shape", "data"} describes. Complex numbers are pairs; unsigned integers above 8 bits come
// as the signed type of their width, with the same bits.
at::Tensor tensor_of(const nlohmann::json& array);

}  // namespace brigade::cases
