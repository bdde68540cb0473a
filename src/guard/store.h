// Writes checkpoints into one folder, so that at every moment the newest or the one before can be read.
//
//   1. a folder .tmp-step-00000042, of mode 0700
//   2. model.safetensors, optimizer.safetensors, state.json and last manifest.json, each written, flushed, closed and read back
//   3. the folder is flushed, and takes the name step-00000042
//   4. the folder around it is flushed
//   5. only now older ones go: first out of their names, then off the disk
//
// Free of torch, so that all of it is tested with sanitizers, failing calls and torn writes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "brigade/guard/options.h"
#include "guard/files.h"
#include "guard/folder.h"

namespace brigade::guard {

// What a checkpoint is made of, before it is files.
struct Content {
  std::int64_t step = 0;
  Producer model = {};
  Producer optimizer = {};
  nlohmann::json state = nlohmann::json::object();  // gets "step"
};

class Store {
 public:
  // Takes the folder for this writer alone and removes what an earlier one left unfinished. Throws InvalidArgument for options
  // that cannot be, DataError when another writer has the folder, or it cannot be used.
  Store(SystemCalls& calls, CheckpointerOptions options);

  // Throws DataError when it is not certain that the checkpoint is on the disk; what was there before is untouched then, and
  // what was written is removed. InvalidArgument for a state that cannot be written, and a step before one that is there: a
  // folder belongs to one run.
  void write(const Content& content);

 private:
  void remove_leftovers() const;
  void require_newest(std::int64_t step) const;
  void fill(const std::string& temporary, const Content& content, const std::string& state) const;
  void take_place(const std::string& temporary, std::int64_t step, bool replaces) const;
  void remove_old();
  void remove_checkpoint(std::int64_t step) const;
  void warn_unless_removed(const std::string& temporary) const;
  std::vector<std::int64_t> sound_steps() const;
  std::optional<std::int64_t> best_of(const std::vector<std::int64_t>& steps);
  std::optional<double> metric_of(std::int64_t step);

  CheckpointerOptions options_;
  Folder folder_;
  Descriptor lock_;
  std::map<std::int64_t, std::optional<double>> metrics_;  // of steps that were looked at
};

}  // namespace brigade::guard
