// A causal language model over bytes: width 128, 4 layers of 4 heads with the normalisation in front, GELU, learned positions;
// dropout in front of the first layer and on all that is added to the stream.
//
// A. Vaswani et al., "Attention is all you need", NeurIPS 2017; first values as in A. Radford et al., "Language models are
// unsupervised multitask learners", 2019.
#pragma once

#include "network.h"

namespace brigade::cli {

// Rows of up to shape.row[0] bytes. Names: "embed", "position", "blocks.0.qkv", "norm", "head".
std::shared_ptr<Network> make_transformer(const DataShape& shape, const NetworkOptions& options);

}  // namespace brigade::cli
