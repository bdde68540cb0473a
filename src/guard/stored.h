// Checkpoints on the disk, as they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "guard/files.h"
#include "guard/folder.h"
#include "guard/manifest.h"

namespace brigade::guard {

// One checkpoint. Every function throws DataError, naming file and difference, for what is not as it was written.
class Stored {
 public:
  // Reads the manifest, and compares the sizes of all files with it; and its step, if one is given.
  explicit Stored(Folder folder, std::optional<std::int64_t> step = {});

  std::int64_t step() const noexcept { return manifest_.step; }
  const Manifest& manifest() const noexcept { return manifest_; }
  const Folder& folder() const noexcept { return folder_; }
  std::filesystem::path path_of(Part part) const { return folder_.path_of(file_of(part)); }

  nlohmann::json state() const;                                 // of a digest that was compared
  void require_same(Part part, const FileRecord& found) const;  // what somebody read of that file
  void verify() const;                                          // reads every byte

 private:
  Folder folder_;
  Manifest manifest_;
};

// The steps of which there is a checkpoint, sound or not, in ascending order.
std::vector<std::int64_t> steps_in(const Folder& folder);

// Hands the newest checkpoint of `folder` to `use`; if that throws DataError, as a reader does of a damaged one, says so in the
// log and goes on with the one before. True once `use` returned; false when there is no checkpoint, or no folder. Throws
// DataError when there are some and none can be used: to begin anew without a word would lose the run.
bool use_newest(SystemCalls& calls, const std::filesystem::path& folder, const std::function<void(const Stored&)>& use);

}  // namespace brigade::guard
