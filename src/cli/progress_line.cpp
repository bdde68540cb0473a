#include "progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace brigade::cli {
namespace {

// Of the terminal on standard output, which may change while we run.
std::size_t terminal_columns() {
  struct winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string joined(const std::vector<std::string>& parts, std::size_t columns) {
  std::string line = parts.front().substr(0, columns - 1);
  for (std::size_t i = 1; i < parts.size() && line.size() + 2 + parts[i].size() < columns; ++i) line += "  " + parts[i];
  return line;
}

}  // namespace

ProgressLine::ProgressLine() : on_terminal_(isatty(STDOUT_FILENO) == 1), last_(std::chrono::steady_clock::now()) {}

bool ProgressLine::is_due() const {
  const auto pause = on_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
  return std::chrono::steady_clock::now() - last_ >= pause;
}

void ProgressLine::show(const std::vector<std::string>& parts) {
  last_ = std::chrono::steady_clock::now();
  if (on_terminal_) {
    fmt::print("\r\033[K{}", joined(parts, terminal_columns()));
    open_ = true;
  } else {
    fmt::print("{}\n", joined(parts, std::string::npos));
  }
  std::fflush(stdout);
}

void ProgressLine::close() {
  if (open_) std::putchar('\n');
  open_ = false;
}

}  // namespace brigade::cli
