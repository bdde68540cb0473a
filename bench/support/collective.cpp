#include "support/collective.h"

#include <fmt/format.h>

namespace brigade::bench {
namespace {

using comm::Operation;

std::size_t blocks_given(Operation operation, std::size_t ranks) {
  if (operation == Operation::kBroadcast) return 0;
  return operation == Operation::kReduceScatter || operation == Operation::kAllToAll ? ranks : 1;
}

std::size_t blocks_received(Operation operation, std::size_t ranks) {
  return operation == Operation::kAllGather || operation == Operation::kAllToAll ? ranks : 1;
}

}  // namespace

Buffers::Buffers(const Collective& collective, int ranks)
    : in(collective.elements() * blocks_given(collective.operation, static_cast<std::size_t>(ranks)), 1.0F),
      out(collective.elements() * blocks_received(collective.operation, static_cast<std::size_t>(ranks))) {}

std::string line_of(const Request& request) {
  return fmt::format("{} {} {}", name_of(request.collective.operation), request.collective.bytes, request.calls);
}

std::optional<Request> read_request(std::istream& input) {
  std::string name;
  Request request;
  if (!(input >> name >> request.collective.bytes >> request.calls)) return std::nullopt;
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                    Operation::kBroadcast, Operation::kAllToAll}) {
    if (name != name_of(operation)) continue;
    request.collective.operation = operation;
    return request;
  }
  return std::nullopt;
}

}  // namespace brigade::bench
