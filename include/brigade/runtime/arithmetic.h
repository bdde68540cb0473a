// What the bits of a computation depend on besides the program and its data. Runs with the same arithmetic can be compared bit
// for bit; others differ in the last digits of every product, however alike they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brigade {

// Names and values, to be compared and shown: {"processor", "AMD EPYC"}, {"blas", "OpenBLAS 0.3.21, kernels for Zen"},
// {"libtorch", "1.13.1"}. Creates the devices.
std::vector<std::pair<std::string, std::string>> arithmetic();

}  // namespace brigade
