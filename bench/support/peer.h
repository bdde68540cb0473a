// A program of another library that lives as long as the bench and measures one round whenever it is asked.
//
// It reads a line from its standard input, measures, and writes one line of JSON to its standard output. Between lines
// it must not use the processor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace brigade::bench {

// The peer is not installed, does not start, or died; the bench leaves its rows out and says why.
class PeerAbsent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Peer {
 public:
  // Starts `command`, found along PATH. Throws PeerAbsent when it cannot be executed.
  Peer(std::string name, std::vector<std::string> command);
  // Closes the peer's input and ends its processes, by force when it does not go by itself.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The next line that it writes by itself, such as what it is. Throws PeerAbsent when none comes in time or it is no
  // JSON.
  nlohmann::json read(std::chrono::milliseconds timeout = std::chrono::seconds(120));

  // Sends `line`, whose answer is read() later. Throws PeerAbsent when the peer has ended.
  void send(const std::string& line);

  // Sends `line` and returns the answer. Throws PeerAbsent as read() does.
  nlohmann::json ask(const std::string& line, std::chrono::milliseconds timeout = std::chrono::seconds(60));

 private:
  std::string read_line(std::chrono::milliseconds timeout);

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;   // we write
  int output_ = -1;  // we read
  std::string unread_;
};

// `mpirun` with so many ranks on this machine, also for root.
std::vector<std::string> under_mpirun(int ranks, const std::string& program);

}  // namespace brigade::bench
