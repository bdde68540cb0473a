// One participant of a ThreadGroup. Every operation takes the same steps, in run().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/comm/call.h"
#include "brigade/comm/thread_group.h"
#include "comm/meeting.h"
#include "comm/messages.h"
#include "comm/moves.h"

namespace brigade::comm {

class ThreadGroup::Member final : public Group {
 public:
  // `meeting` and `group_name` outlive the member.
  Member(Meeting& meeting, const std::string& group_name, int rank);

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return meeting_.size(); }

  const Capabilities& capabilities() const noexcept override { return kernel_capabilities(); }

  void run(const Call& call, const CallOptions& options) override;
  Group& among(std::span<const int> ranks) override;

  Statistics statistics() const noexcept override { return statistics_; }
  void reset_statistics() noexcept override { statistics_ = {}; }

  // The group has been reset; operations are counted from 1 again.
  void reset() noexcept { sequence_ = 0; }

 private:
  std::uint64_t begin(const Call& call, const CallOptions& options) override;
  void finish(std::uint64_t ticket) override;
  bool try_finish(std::uint64_t ticket) override;
  void abandon(std::uint64_t ticket) noexcept override;

  // Memory that stands in for inputs which are overwritten while others still read them.
  using Staging = std::unique_ptr<std::byte[]>;

  void run_alone(const Call& call) noexcept;
  Staging prepare(const Call& call, const CallOptions& options, bool by_payload);
  Staging stage_inputs(const Call& call);
  void write_payload(const Call& call, std::size_t bytes) noexcept;
  void meet(const CallOptions& options);
  void move_from_payloads(const Call& call, std::size_t bytes) noexcept;
  void move_directly(const Call& call, const CallOptions& options);
  void pull_directly(const Call& call) noexcept;
  void reduce_own_share(const Call& call) noexcept;

  [[noreturn]] void leave_late(const Call& call, const CallOptions& options) const;
  [[noreturn]] void leave_mismatched(const CallOptions& options);
  [[noreturn]] void leave_failed(const CallOptions& options);
  [[noreturn]] void leave_timed_out(const CallOptions& options);

  Post& own_post() noexcept { return meeting_.post(rank_, sequence_); }
  const Post& post_of(std::size_t rank) const noexcept { return meeting_.post(static_cast<int>(rank), sequence_); }
  messages::View view() const noexcept {
    return {.meeting = meeting_, .group = group_name_, .rank = rank_, .sequence = sequence_};
  }
  ErrorContext context(const CallOptions& options) const { return {.device = rank_, .site = options.site}; }

  Meeting& meeting_;
  const std::string& group_name_;
  const int rank_;
  std::uint64_t sequence_ = 0;
  Statistics statistics_;

  // One entry per participant, kept so that operations allocate nothing.
  std::vector<ConstBytes> inputs_;
  std::vector<ConstBytes> scratch_;
  std::vector<Bytes> outs_;
};

}  // namespace brigade::comm
