// Gradient compression, as an option of DataParallel and in its report.
//
//   {.compress = {.codec = compress::topk({.ratio = 0.01}), .start_step = 100}}
//
// Each leaf's gradient of each parameter is encoded and decoded before it is summed, as if leaves met over a wire: what a run with
// compressed messages would train, on one machine. Sums are taken in float32 after decoding, in the tree over all leaves, so the bits do
// not depend on how many devices carry them. Nothing becomes faster by it in one process.
#pragma once

#include <cstdint>

#include "brigade/comm/compress/codecs.h"

namespace brigade::training {

// Whether what a codec loses in one step is added to the gradients of the next one.
enum class ErrorFeedback : std::uint8_t {
  kByCodec,  // where the codec wants it: int8, onebit, topk, powersgd
  kOn,
  kOff,
};

struct Compression {
  comm::Codec codec = {};  // of namespace compress; without one gradients are summed as they are
  ErrorFeedback error_feedback = ErrorFeedback::kByCodec;
  std::int64_t start_step = 0;  // steps before it are not compressed: early gradients are large, and change fast
};

// What compression did in one step, over all leaves and parameters.
struct CompressionReport {
  std::int64_t wire_bytes = 0;          // of the messages
  std::int64_t uncompressed_bytes = 0;  // of the gradients that they stand for
  double relative_error = 0;  // |lost| / |to be sent|; with error feedback, that includes what was lost before
};

}  // namespace brigade::training
