// A perceptron with one hidden layer of 128: "hidden" and "output".
#pragma once

#include "network.h"

namespace brigade::cli {

// Takes rows of any shape, as the numbers that they hold.
std::shared_ptr<Network> make_mlp(const DataShape& shape, const NetworkOptions& options);

}  // namespace brigade::cli
