// What bodies threw in one launch, and which of it the caller gets.
#pragma once

#include <exception>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "brigade/runtime/axis.h"

namespace brigade {

// "std::runtime_error: text" in a handler of that exception, or the type alone for what is no std::exception. Empty when
// there is no memory for it.
std::string describe_current_exception() noexcept;

class Failures {
 public:
  // Forgets the last launch, and makes room for one failure of each of `devices`.
  void prepare(std::size_t devices);

  // Called on the device's thread, in the order of time.
  void add(int position, std::exception_ptr error) noexcept;

  // Rethrows the primary failure, if there is one, after publishing and logging the report. An exception keeps its type
  // and text even when there is no memory for the report.
  void rethrow(const Axis& axis, std::source_location site);

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, std::exception_ptr>> entries_;  // position, error
};

}  // namespace brigade
