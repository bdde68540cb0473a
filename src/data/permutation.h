// The order of an epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::data {

// A permutation of [0, rows) that depends on these three numbers alone.
std::vector<std::int64_t> permutation_of_epoch(std::int64_t seed, std::int64_t epoch, std::int64_t rows);

}  // namespace brigade::data
