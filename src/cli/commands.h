// The commands of the program `brigade`, and how they end.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace brigade::cli {

// Exit codes, as docs/faults.md lists them.
enum class Exit : int {
  kSuccess = 0,
  kFailure = 1,    // anything without a code of its own
  kUsage = 2,      // the command line or an environment variable
  kData = 3,       // a file is missing or damaged
  kNonFinite = 4,  // the loss became NaN or infinite
  kDifferent = 5,  // what was compared is not the same
  kHang = 6,       // a device did not come back, or nobody made progress
  kDrift = 7,      // memory changed by itself
  kOutOfMemory = 8,
  kInterrupted = 130,  // Ctrl-C, after the step was finished
};

// A command adds itself to the program and returns what runs it once the command line is read.
using Command = std::function<Exit()>;
Command add_train_command(CLI::App& program);
Command add_devices_command(CLI::App& program);
Command add_audit_command(CLI::App& program);

}  // namespace brigade::cli
