// Codecs of gradients by the names of the command line.
#pragma once

#include <string>

#include "brigade/comm/compress/codec.h"

namespace brigade::cli {

// Of "none" (a Codec that is none), "fp16", "bf16", "int8", "onebit", "topk", "topk:0.01", "powersgd", "powersgd:4". Throws
// InvalidArgument, which suggests the nearest, for any other text.
comm::Codec codec_named(const std::string& text);

std::string codec_list();

}  // namespace brigade::cli
