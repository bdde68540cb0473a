// One collective of float32 values as the bench and its peers measure it: what its size means, the buffers of one rank, and
// the line that asks a peer for it.
#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>

#include "brigade/comm/call.h"
#include "support/aligned.h"

namespace brigade::bench {

struct Collective {
  comm::Operation operation = comm::Operation::kAllReduce;

  // Of one block: what a rank gives and gets in all_reduce and broadcast, gives in all_gather, keeps in reduce_scatter, and
  // sends to each rank in all_to_all.
  std::size_t bytes = 0;

  std::size_t elements() const noexcept { return bytes / sizeof(float); }
};

// What one rank passes. A broadcast has no `in`, as MPI's has one buffer; its root changes with every call, as one that
// stays would run ahead of the others.
struct Buffers {
  Buffers(const Collective& collective, int ranks);

  AlignedVector<float> in;
  AlignedVector<float> out;
};

struct Request {
  Collective collective;
  int calls = 0;
};

// "<operation> <bytes> <calls>".
std::string line_of(const Request& request);

// The request on the next line; none at the end of the input, or when the line is no request.
std::optional<Request> read_request(std::istream& input);

}  // namespace brigade::bench
