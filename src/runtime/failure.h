// What bodies threw in one launch, and which of it the caller gets.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "brigade/runtime/axis.h"

namespace brigade {

// "std::runtime_error: text", or the type alone for what is no std::exception.
std::string describe(const std::exception_ptr& error);

class Failures {
 public:
  // Called on the device's thread, in the order of time.
  void add(int position, std::exception_ptr error);

  void clear();

  // Rethrows the primary failure, if there is one, after publishing and logging the report.
  void rethrow(const Axis& axis, std::source_location site);

 private:
  struct Entry {
    int position = 0;
    std::exception_ptr error;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace brigade
