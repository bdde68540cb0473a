#include "guard/disk_model.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>

#include "guard/support.h"

namespace brigade::guard::testing {
namespace {

using Entries = Node::Entries;
using State = RecordingCalls::State;

std::shared_ptr<Node> node_of(const std::filesystem::path& path) {
  auto node = std::make_shared<Node>();
  node->is_folder = std::filesystem::is_directory(path);
  if (!node->is_folder) {
    node->flushed = node->data = text_of(path);
    return node;
  }
  for (const std::string& name : names_in(path)) node->entries[name] = node_of(path / name);
  node->flushed_entries = node->entries;
  return node;
}

// Where what it starts from did not get there, it does nothing.
void carry_out(const Node::Change& change, Entries& entries) {
  const auto found = entries.find(change.name);
  switch (change.kind) {
    case Node::Change::Kind::kAdd:
      entries[change.name] = change.node;
      return;
    case Node::Change::Kind::kRemove:
      entries.erase(change.name);
      return;
    case Node::Change::Kind::kRename:
      if (found == entries.end()) return;
      entries[change.other] = found->second;
      entries.erase(change.name);
      return;
    case Node::Change::Kind::kExchange:
      if (found == entries.end() || !entries.contains(change.other)) return;
      std::swap(found->second, entries.at(change.other));
      return;
  }
}

// What a folder may list.
std::vector<Entries> possible_entries(const Node& folder) {
  std::vector<Entries> all;
  const std::size_t count = folder.pending.size();
  EXPECT_LE(count, 8u) << "more subsets than can be tried";
  for (std::size_t subset = 0; subset < std::size_t{1} << count; ++subset) {
    Entries entries = folder.flushed_entries;
    for (std::size_t i = 0; i < count; ++i) {
      if ((subset >> i & 1) != 0) carry_out(folder.pending[i], entries);
    }
    if (std::find(all.begin(), all.end(), entries) == all.end()) all.push_back(std::move(entries));
  }
  return all;
}

std::string content_of(const Node& file, Unflushed unflushed) {
  switch (unflushed) {
    case Unflushed::kThere:
      return file.data;
    case Unflushed::kMissing:
      return file.flushed;
    case Unflushed::kTorn:
      return file.data.substr(0, file.flushed.size() + (file.data.size() - file.flushed.size()) / 2);
    case Unflushed::kZeros:
      return file.flushed + std::string(file.data.size() - file.flushed.size(), '\0');
  }
  return {};
}

// Every way to lay out `folder`, added to each state there is until now.
std::vector<State> laid_out(const Node& folder, const std::string& path, Unflushed unflushed,
                            const std::vector<State>& until) {
  std::vector<State> all;
  for (const Entries& entries : possible_entries(folder)) {
    std::vector<State> states = until;
    for (const auto& [name, node] : entries) {
      for (State& state : states)
        state[path + name + (node->is_folder ? "/" : "")] = node->is_folder ? "" : content_of(*node, unflushed);
      if (node->is_folder) states = laid_out(*node, path + name + "/", unflushed, states);
    }
    all.insert(all.end(), states.begin(), states.end());
  }
  return all;
}

}  // namespace

RecordingCalls::RecordingCalls(const std::filesystem::path& root) : path_(root), root_(node_of(root)) {}

void RecordingCalls::add_crash_states(std::set<State>& states) const {
  for (const Unflushed unflushed : {Unflushed::kThere, Unflushed::kMissing, Unflushed::kTorn, Unflushed::kZeros}) {
    for (State& state : laid_out(*root_, "", unflushed, {State()})) states.insert(std::move(state));
  }
}

int RecordingCalls::open(int folder, const char* name, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0) before_change();
  const int number = SystemCalls::open(folder, name, flags, mode);
  if (number < 0) return number;
  if (folder == AT_FDCWD) {
    EXPECT_EQ(std::filesystem::path(name), path_);
    open_[number] = root_;
    return number;
  }
  Node& parent = *open_.at(folder);
  if ((flags & O_CREAT) != 0 && !parent.entries.contains(name))
    change(folder, {.kind = Node::Change::Kind::kAdd, .name = name, .node = std::make_shared<Node>()});
  open_[number] = parent.entries.at(name);
  return number;
}

ssize_t RecordingCalls::write(int file, const void* bytes, std::size_t size) {
  before_change();
  open_.at(file)->data.append(static_cast<const char*>(bytes), size);
  return SystemCalls::write(file, bytes, size);
}

int RecordingCalls::fsync(int file) {
  before_change();
  Node& node = *open_.at(file);
  node.flushed = node.data;
  node.flushed_entries = node.entries;
  node.pending.clear();
  return SystemCalls::fsync(file);
}

int RecordingCalls::close(int file) {
  open_.erase(file);
  return SystemCalls::close(file);
}

int RecordingCalls::rename(int folder, const char* from, const char* to) {
  change(folder, {.kind = Node::Change::Kind::kRename, .name = from, .other = to});
  return SystemCalls::rename(folder, from, to);
}

int RecordingCalls::exchange(int folder, const char* one, const char* other) {
  change(folder, {.kind = Node::Change::Kind::kExchange, .name = one, .other = other});
  return SystemCalls::exchange(folder, one, other);
}

int RecordingCalls::mkdir(int folder, const char* name, mode_t mode) {
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  change(folder, {.kind = Node::Change::Kind::kAdd, .name = name, .node = std::move(node)});
  return SystemCalls::mkdir(folder, name, mode);
}

int RecordingCalls::unlink(int folder, const char* name, int flags) {
  if (open_.at(folder)->entries.contains(name)) change(folder, {.kind = Node::Change::Kind::kRemove, .name = name});
  return SystemCalls::unlink(folder, name, flags);
}

void RecordingCalls::change(int folder, Node::Change change) {
  before_change();
  Node& node = *open_.at(folder);
  carry_out(change, node.entries);
  node.pending.push_back(std::move(change));
}

void put_state(const State& state, const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  for (const auto& [path, content] : state) {  // a folder sorts before what it holds
    if (path.ends_with('/')) {
      std::filesystem::create_directory(folder / path);
    } else {
      put_text(folder / path, content);
    }
  }
}

}  // namespace brigade::guard::testing
