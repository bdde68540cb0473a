#include "collectives/verification.h"

#include <array>
#include <cstdint>
#include <cstdlib>

#include "comm/meeting.h"
#include "support/aligned.h"
#include "support/rounds.h"

namespace brigade::bench {

double verification_nanoseconds(int calls) {
  constexpr std::uint64_t kSequence = 1;
  comm::Roster roster(2, {});
  comm::Meeting meeting(roster, {0, 1});
  const std::array<std::int64_t, 2> shape = {16, 16};
  const AlignedVector<float> in(16 * 16);
  AlignedVector<float> out(in.size());
  const comm::Piece piece = {
      .in = std::as_bytes(std::span(in)), .out = std::as_writable_bytes(std::span(out)), .shape = shape};
  const comm::Call call = {.operation = comm::Operation::kAllReduce, .pieces = {&piece, 1}};
  const comm::CallOptions options = {.tag = "psum"};

  const auto post = [&](int rank) {
    comm::Post& own = meeting.post(rank, kSequence);
    own.describe(call, options);
    own.fingerprint = fingerprint(call, options.tag);
  };
  post(1);
  return nanoseconds_per_call(calls, [&] {
    post(0);
    if (!meeting.all_alike(0, kSequence)) std::abort();
  });
}

}  // namespace brigade::bench
