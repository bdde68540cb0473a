// A disk that loses power: what may be on it afterwards, from the calls that were made until then.
//
// Data of a file are on it once the file was flushed; what was written since may be there, be missing, end in the middle or be
// zeros. Entries of a folder are on it once the folder was flushed; of what changed since, any part may be.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "guard/system_calls.h"

namespace brigade::guard::testing {

// A file or a folder.
struct Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  // A change of a folder's entries. All are atomic.
  struct Change {
    enum class Kind { kAdd, kRemove, kRename, kExchange } kind;
    std::string name;
    std::string other = {};
    std::shared_ptr<Node> node = nullptr;
  };

  bool is_folder = false;
  std::string flushed, data;         // of a file
  Entries flushed_entries, entries;  // of a folder
  std::vector<Change> pending = {};  // since it was flushed
};

enum class Unflushed { kThere, kMissing, kTorn, kZeros };

// Passes calls on to the disk of the machine, and keeps account of them in a model of the folder `root`, whose present content is
// taken to be flushed.
class RecordingCalls final : public SystemCalls {
 public:
  explicit RecordingCalls(const std::filesystem::path& root);

  // What may be on the disk if the power failed now, each as a file's content by its path; folders end in a slash. Adds to
  // `states`.
  using State = std::map<std::string, std::string>;
  void add_crash_states(std::set<State>& states) const;

  // Called before each call that changes something.
  std::function<void()> before_change = [] {};

  int open(int folder, const char* name, int flags, mode_t mode) override;
  ssize_t write(int file, const void* bytes, std::size_t size) override;
  int fsync(int file) override;
  int close(int file) override;
  int rename(int folder, const char* from, const char* to) override;
  int exchange(int folder, const char* one, const char* other) override;
  int mkdir(int folder, const char* name, mode_t mode) override;
  int unlink(int folder, const char* name, int flags) override;

 private:
  void change(int folder, Node::Change change);

  std::filesystem::path path_;
  std::shared_ptr<Node> root_;
  std::map<int, std::shared_ptr<Node>> open_;
};

// Makes `folder` hold this state and nothing else.
void put_state(const RecordingCalls::State& state, const std::filesystem::path& folder);

}  // namespace brigade::guard::testing
