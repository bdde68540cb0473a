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
//    overlap; spans of different pieces do not, unless both are only read.
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>

#include "brigade/base/deadline.h"
#include "brigade/comm/call.h"
#include "brigade/comm/capabilities.h"

namespace brigade::comm {

// What every operation takes besides its data. `tag` names the operation in messages ("psum"); participants whose tags
// differ mismatch. `site` is the user's call, printed when participants disagree.
struct CallOptions {
  std::string_view tag = {};
  std::source_location site = std::source_location::current();
  Deadline deadline = Deadline::never();  // besides the group's own limit of time without progress
};

// What this participant has spent in the group since the last reset_statistics(). Times too short to be worth a reading
// of the clock are left out.
struct Statistics {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;               // given by this participant
  std::chrono::nanoseconds waiting{0};  // for others to arrive or to finish
  std::chrono::nanoseconds moving{0};   // copying and adding
};

class Group;

// An operation that was started and may be incomplete. Until wait() returned or test() gave true, the spans of its pieces
// stay alive and untouched. Destroyed earlier, it aborts the group (an exception is passing, or the caller forgot it) and
// returns once nobody touches those spans.
class [[nodiscard]] Pending {
 public:
  Pending(Group& group, std::uint64_t ticket) noexcept : group_(&group), ticket_(ticket) {}
  Pending(Pending&& other) noexcept : group_(std::exchange(other.group_, nullptr)), ticket_(other.ticket_) {}
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();

  // Returns when the operation is complete. Throws what the operation throws. Nothing when it was complete before.
  void wait();

  // Whether the operation is complete, without waiting for others. Throws as wait().
  bool test();

 private:
  Group* group_;  // null once complete
  std::uint64_t ticket_;
};

class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual const Capabilities& capabilities() const noexcept = 0;

  // out = reduction over participants of in. Sizes of in and out are equal; the dtype is reducible.
  void all_reduce(Reduction reduction, std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kAllReduce, .reduction = reduction, .pieces = pieces}, options);
  }

  // As all_reduce, but only root's out is written. The others state theirs for its size; all may be the same memory.
  void reduce(int root, Reduction reduction, std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kReduce, .reduction = reduction, .root = root, .pieces = pieces}, options);
  }

  // in holds size() equal blocks; out receives block rank() of the reduction.
  void reduce_scatter(Reduction reduction, std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kReduceScatter, .reduction = reduction, .pieces = pieces}, options);
  }

  // out holds size() equal blocks and receives every participant's in, in rank order.
  void all_gather(std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kAllGather, .pieces = pieces}, options);
  }

  // out receives root's in. Only root's `in` is read; on others it has the same size or is empty.
  void broadcast(int root, std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kBroadcast, .root = root, .pieces = pieces}, options);
  }

  // in and out hold size() equal blocks: block r of in goes to participant r, whose out holds it as block rank().
  void all_to_all(std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kAllToAll, .pieces = pieces}, options);
  }

  // out receives the in of the source that `pairs` gives for this rank; zeros when there is none. Every participant
  // passes the same pairs; a source or a destination that stands twice throws InvalidArgument.
  void permute(std::span<const RankPair> pairs, std::span<const Piece> pieces, const CallOptions& options) {
    run({.operation = Operation::kPermute, .pairs = pairs, .pieces = pieces}, options);
  }

  // Returns once every participant has arrived.
  void barrier(const CallOptions& options) { run({.operation = Operation::kBarrier}, options); }

  // Any of the above, whose rules for pieces hold.
  virtual void run(const Call& call, const CallOptions& options) = 0;

  // As run(), but returns before the others have come. Operations of one group are carried out in the order in which they
  // were started, by those participants that wait for one or test one. The call's spans of pieces, shapes and pairs are
  // copied; what the pieces point to is not.
  Pending start(const Call& call, const CallOptions& options) { return {*this, begin(call, options)}; }

  // This participant's handle of the group of `ranks`, in that order, which all of them ask for. It lives as long as this
  // one, and fails with it: whoever aborts or leaves one of them aborts or leaves all. Throws InvalidArgument unless
  // `ranks` are of this group, each once, and include rank().
  virtual Group& among(std::span<const int> ranks) = 0;

  virtual Statistics statistics() const noexcept = 0;
  virtual void reset_statistics() noexcept = 0;

 private:
  friend class Pending;

  virtual std::uint64_t begin(const Call& call, const CallOptions& options) = 0;
  virtual void finish(std::uint64_t ticket) = 0;
  virtual bool try_finish(std::uint64_t ticket) = 0;
  virtual void abandon(std::uint64_t ticket) noexcept = 0;
};

}  // namespace brigade::comm
