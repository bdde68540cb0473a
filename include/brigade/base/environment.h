// Every environment variable that Brigade reads, read and validated in one place.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace brigade {

struct Environment {
  std::optional<int> cpu_devices = {};         // BRIGADE_CPU_DEVICES: 1 to 1024
  std::optional<int> intra_op_threads = {};    // BRIGADE_INTRA_OP_THREADS: 1 to 1024, per device
  bool pin_threads = false;                    // BRIGADE_PIN_THREADS: 0 or 1
  std::chrono::milliseconds deadline{60'000};  // BRIGADE_DEADLINE: seconds without progress, above 0
  std::string log_level = "warn";              // BRIGADE_LOG: trace, debug, info, warn, error or off

  using Lookup = std::function<const char*(const char* name)>;

  // Throws EnvironmentError, naming the variable, its value and what it takes.
  static Environment read(const Lookup& lookup);
};

// The process's environment, read on first use. A value that cannot be used throws at every call.
const Environment& environment();

}  // namespace brigade
