// The line that says how far a run has come: renewed in place on a terminal, one after another in a log.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace brigade::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { close(); }  // so that an error's text starts on a line of its own
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool on_terminal() const { return on_terminal_; }

  // Whether the last line is old enough: a terminal's is renewed ten times a second, a log gets one every ten seconds.
  bool is_due() const;

  // The parts in order; on a terminal as many as fit into a line that does not wrap.
  void show(const std::vector<std::string>& parts);

  // Ends the line that stands open.
  void close();

 private:
  bool on_terminal_;
  bool open_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace brigade::cli
