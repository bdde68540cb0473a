// Collectives over the participants of one group, on spans of bytes with a dtype.
//
// A `Group` is one participant's handle: its rank, the size, and the operations that all participants call together, in
// the same order. Devices of one process (`ThreadGroup`) and processes (transports) implement the same interface.
//
// Rules that hold for every operation and every implementation:
//  - Checked before moved: operation, tag, dtypes and sizes of the pieces (and root, pairs, divisor, where there are
//    some) of each participant's n-th call are compared before any byte moves. A difference throws CollectiveMismatch
//    on every participant, with both sides in the message, and nothing has been written.
//  - Fixed order: a sum over P participants is T(0, P), where T(i, i + 1) is participant i's value and
//    T(i, j) = T(i, i + p) + T(i + p, j), with p the largest power of two below j - i. It never depends on timing, size
//    or method.
//  - No hang: an operation ends with Aborted when another participant fails, with CollectiveMismatch when another has
//    left the group (its body returned), and with DeadlineExceeded when nobody makes progress until the deadline.
//  - After a throw the group is unusable until all participants are out of it and it is reset.
//  - Spans may have any alignment and length, also zero. `in` and `out` of one piece are the same span or do not
//    overlap.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brigade/base/deadline.h"
#include "brigade/comm/dtype.h"

namespace brigade::comm {

enum class ReduceOp : std::uint8_t { kSum, kMin, kMax };

std::string_view name_of(ReduceOp op) noexcept;

// How a reduction combines: the operator, then one division of the result, correctly rounded (a mean over N has divisor
// N). Integers take divisor 1 only. A NaN wins a min or max, as in JAX and torch.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  double divisor = 1.0;
};

// One tensor of a collective: what this participant gives and where its result goes. Several travel in one meeting.
struct Piece {
  DType dtype = DType::kFloat32;
  std::span<const std::byte> in = {};
  std::span<std::byte> out = {};
  // Sizes of the dimensions of what is given, compared among participants and shown in messages. No pointer: not
  // stated.
  std::span<const std::int64_t> shape = {};
  // What the elements were before they became `dtype`, such as "float16"; compared and shown. In static storage.
  std::string_view origin = {};
};

// What every operation takes besides its data. `tag` names the operation in messages ("psum"); participants whose tags
// differ mismatch. `site` is the user's call, printed when participants disagree.
struct CallOptions {
  std::string_view tag = {};
  std::source_location site = std::source_location::current();
  Deadline deadline = Deadline::never();  // besides the group's own limit of time without progress
};

// Source and destination ranks of one transfer.
using RankPair = std::pair<int, int>;

// What this participant has spent in the group since the last reset_statistics(). Times too short to be worth a reading
// of the clock are left out.
struct Statistics {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;               // given by this participant
  std::chrono::nanoseconds waiting{0};  // for others to arrive or to finish
  std::chrono::nanoseconds moving{0};   // copying and adding
};

class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // out = reduction over participants of in. Sizes of in and out are equal; the dtype is reducible.
  virtual void all_reduce(Reduction reduction, std::span<const Piece> pieces, const CallOptions& options) = 0;

  // in holds size() equal blocks; out receives block rank() of the reduction.
  virtual void reduce_scatter(Reduction reduction, std::span<const Piece> pieces, const CallOptions& options) = 0;

  // out holds size() equal blocks and receives every participant's in, in rank order.
  virtual void all_gather(std::span<const Piece> pieces, const CallOptions& options) = 0;

  // out receives root's in. Only root's `in` is read; on others it has the same size or is empty.
  virtual void broadcast(int root, std::span<const Piece> pieces, const CallOptions& options) = 0;

  // in and out hold size() equal blocks: block r of in goes to participant r, whose out holds it as block rank().
  virtual void all_to_all(std::span<const Piece> pieces, const CallOptions& options) = 0;

  // out receives the in of the source that `pairs` gives for this rank; zeros when there is none. Every participant
  // passes the same pairs; a source or a destination that stands twice throws InvalidArgument.
  virtual void permute(std::span<const RankPair> pairs, std::span<const Piece> pieces, const CallOptions& options) = 0;

  // Returns once every participant has arrived.
  virtual void barrier(const CallOptions& options) = 0;

  virtual Statistics statistics() const noexcept = 0;
  virtual void reset_statistics() noexcept = 0;
};

}  // namespace brigade::comm
