// A program run as a whole process, with its output and its end.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace brigade {

// A terminal of this width as the program's standard output, in place of a pipe.
struct Terminal {
  unsigned short columns = 80;
};

class Process {
 public:
  // Starts argv[0], by its path. `environment` entries such as "NAME=value" are added to this process's own.
  explicit Process(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {},
                   std::optional<Terminal> terminal = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The next line of its standard output without the newline; nothing at the end.
  std::optional<std::string> read_line();

  void send(int signal) const;

  // Reads what is left of its output and waits. Returns the exit code, or 128 + signal.
  int wait();

  const std::string& out() const { return out_; }  // all lines read
  std::string err() const;                         // complete after wait()

 private:
  pid_t pid_ = -1;
  std::FILE* stdout_ = nullptr;
  std::FILE* stderr_ = nullptr;  // a temporary file, so that it never blocks
  std::string out_;
};

struct Finished {
  int code;
  std::string out;
  std::string err;
};

Finished run_process(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {},
                     std::optional<Terminal> terminal = {});

}  // namespace brigade
