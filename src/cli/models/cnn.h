// A small convolutional network: 3 x 3 convolutions to 32 and 64 channels, each with ReLU and 2 x 2 max pooling, then a
// hidden layer of 128: "conv1", "conv2", "hidden", "output".
#pragma once

#include "network.h"

namespace brigade::cli {

// Images of 4 x 4 and more. Throws InvalidArgument for other rows.
std::shared_ptr<Network> make_cnn(const DataShape& shape, const NetworkOptions& options);

}  // namespace brigade::cli
