#include "process.h"

#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace brigade {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Descriptors to read from and to write to.
bool open_ends(int (&ends)[2], std::optional<Terminal> terminal) {
  if (!terminal) return pipe(ends) == 0;
  const winsize size = {.ws_row = 24, .ws_col = terminal->columns, .ws_xpixel = 0, .ws_ypixel = 0};
  return openpty(&ends[0], &ends[1], nullptr, nullptr, &size) == 0;
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                 std::optional<Terminal> terminal)
    : stderr_(std::tmpfile()) {
  int ends[2];
  if (stderr_ == nullptr || !open_ends(ends, terminal)) {
    throw std::runtime_error("cannot make a pipe, a terminal or a temporary file");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(stderr_), STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<std::string> variables = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const int error =
      posix_spawn(&pid_, argv.at(0).c_str(), &actions, nullptr, pointers(argv).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " + argv[0] + ": " + std::strerror(error));
  stdout_ = fdopen(ends[0], "r");
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (stdout_ != nullptr) std::fclose(stdout_);
  std::fclose(stderr_);
}

std::optional<std::string> Process::read_line() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, stdout_);
  std::optional<std::string> result;
  if (length >= 0) {
    out_.append(line, static_cast<std::size_t>(length));
    result.emplace(line, static_cast<std::size_t>(length));
    if (!result->empty() && result->back() == '\n') result->pop_back();
  }
  std::free(line);
  return result;
}

void Process::send(int signal) const { kill(pid_, signal); }

int Process::wait() {
  while (read_line()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Process::err() const {
  std::rewind(stderr_);
  std::string text;
  char buffer[4096];
  for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, stderr_)) > 0;) text.append(buffer, count);
  return text;
}

Finished run_process(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     std::optional<Terminal> terminal) {
  Process process(argv, environment, terminal);
  const int code = process.wait();
  return {code, process.out(), process.err()};
}

}  // namespace brigade
