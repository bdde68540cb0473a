#include "support/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "brigade/base/deadline.h"

namespace brigade::bench {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends = {};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw PeerAbsent(fmt::format("no pipe: {}", std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
  int read = -1;
  int write = -1;
};

// Runs in the child and returns only to end it. The pipe that closes on exec tells the parent whether exec worked.
[[noreturn]] void become(const std::vector<char*>& arguments, int input, int output, int failure) {
  setpgid(0, 0);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(failure, &error, sizeof error);
  _exit(127);
}

bool has_ended(pid_t pid, milliseconds limit) {
  for (const Deadline deadline = Deadline::in(limit); !deadline.expired();) {
    if (waitpid(pid, nullptr, WNOHANG) != 0) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

}  // namespace

Peer::Peer(std::string name, std::vector<std::string> command) : name_(std::move(name)) {
  signal(SIGPIPE, SIG_IGN);  // a peer that died shows as an error of write
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const Pipe to;
  const Pipe from;
  const Pipe failure;
  pid_ = fork();
  if (pid_ == 0) become(arguments, to.read, from.write, failure.write);
  for (const int end : {to.read, from.write, failure.write}) close(end);
  input_ = to.write;
  output_ = from.read;
  int error = 0;
  const bool failed = pid_ < 0 || ::read(failure.read, &error, sizeof error) > 0;
  close(failure.read);
  if (!failed) return;
  close(input_);
  close(output_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw PeerAbsent(fmt::format("{}: cannot run {}: {}", name_, command[0], std::strerror(error)));
}

Peer::~Peer() {
  close(input_);
  close(output_);
  if (has_ended(pid_, milliseconds(2000))) return;
  kill(-pid_, SIGTERM);
  if (has_ended(pid_, milliseconds(2000))) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Peer::send(const std::string& line) {
  const std::string sent = line + '\n';
  if (write(input_, sent.data(), sent.size()) != static_cast<ssize_t>(sent.size())) {
    throw PeerAbsent(fmt::format("{}: has ended", name_));
  }
}

nlohmann::json Peer::ask(const std::string& line, milliseconds timeout) {
  send(line);
  return read(timeout);
}

nlohmann::json Peer::read(milliseconds timeout) {
  const std::string answer = read_line(timeout);
  try {
    return nlohmann::json::parse(answer);
  } catch (const nlohmann::json::exception&) {
    throw PeerAbsent(fmt::format("{}: answered \"{}\", which is no JSON", name_, answer));
  }
}

std::string Peer::read_line(milliseconds timeout) {
  const Deadline deadline = Deadline::in(timeout);
  while (true) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    pollfd waiting = {.fd = output_, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<milliseconds>(deadline.remaining());
    if (poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
      throw PeerAbsent(fmt::format("{}: no answer within {} ms", name_, timeout.count()));
    }
    std::array<char, 4096> buffer = {};
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count <= 0) throw PeerAbsent(fmt::format("{}: has ended", name_));
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::vector<std::string> under_mpirun(int ranks, const std::string& program) {
  std::vector<std::string> command = {"mpirun", "-np", std::to_string(ranks), "--oversubscribe"};
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  // Left alone, Open MPI yields the processor between polls when it believes it is oversubscribed, and would look slow.
  // Where it is, it looks slow when it does not.
  const bool oversubscribed = ranks > static_cast<int>(std::thread::hardware_concurrency());
  command.insert(command.end(), {"--mca", "mpi_yield_when_idle", oversubscribed ? "1" : "0", program});
  return command;
}

}  // namespace brigade::bench
