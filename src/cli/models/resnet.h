// ResNet-18 for small images, as in the CIFAR experiments: a 3 x 3 first convolution and no max pooling, then four stages of
// two basic blocks with 64, 128, 256 and 512 channels, of which all but the first halve the image.
//
// K. He et al., "Deep residual learning for image recognition", CVPR 2016. The last scale of each block starts at 0, so that
// it starts as the identity (P. Goyal et al. 2017, section 5.1).
#pragma once

#include "network.h"

namespace brigade::cli {

// Images of 8 x 8 and more. Throws InvalidArgument for other rows. Names: "conv", "norm", "stages.0.1.conv2", "output".
std::shared_ptr<Network> make_resnet18(const DataShape& shape, const NetworkOptions& options);

}  // namespace brigade::cli
