// A Store that writes on a thread of its own, one checkpoint at a time.
#pragma once

#include <cstdint>
#include <future>

#include "guard/store.h"

namespace brigade::guard {

class AsynchronousStore {
 public:
  AsynchronousStore(SystemCalls& calls, CheckpointerOptions options);
  ~AsynchronousStore();  // waits for the write under way; what went wrong is logged

  AsynchronousStore(const AsynchronousStore&) = delete;
  AsynchronousStore& operator=(const AsynchronousStore&) = delete;

  // Waits for the write before, as finish() does, and starts this one. The content owns what its producers give.
  void write(Content content);

  // Waits. By OnFailure::kStop throws what went wrong since it was last said; with kContinue that is logged.
  void finish();

  std::int64_t failures() const noexcept { return failures_; }

 private:
  std::exception_ptr wait();

  const OnFailure on_failure_;
  Store store_;  // while a write is under way, its thread's
  std::future<void> under_way_;
  std::int64_t step_ = 0;  // of the write under way
  std::int64_t failures_ = 0;
};

}  // namespace brigade::guard
