#include "guard/stored.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "brigade/base/error.h"
#include "brigade/base/log.h"
#include "guard/state.h"

namespace brigade::guard {
namespace {

Manifest manifest_in(const Folder& folder) {
  const std::string name(kManifestFile);
  if (!folder.has(name)) {
    throw DataError(fmt::format("{}: there is no such file, so this is no whole checkpoint. Use another one.",
                                folder.path_of(name)));
  }
  return parse_manifest(folder.path_of(name), read_text(folder, name, kMaxManifestBytes));
}

void require_size(const Folder& folder, Part part, std::uint64_t bytes) {
  struct stat status = {};
  const std::string name = file_of(part);
  if (::fstatat(folder.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    folder.fail(name, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(fmt::format("{}: it is no regular file. The checkpoint was tampered with: use another one.",
                                folder.path_of(name)));
  }
  if (static_cast<std::uint64_t>(status.st_size) != bytes) {
    throw DataError(fmt::format("{}: has {} bytes, where {} were written. It is damaged: use another checkpoint.",
                                folder.path_of(name), status.st_size, bytes));
  }
}

// One pass over the checkpoints there are now. Nothing: one of them went away meanwhile, as a writer removes old ones.
std::optional<bool> try_newest(const Folder& folder, const std::function<void(const Stored&)>& use) {
  std::vector<std::int64_t> steps = steps_in(folder);
  std::string first_problem;
  for (std::size_t left = steps.size(); left > 0; --left) {
    const std::int64_t step = steps[left - 1];
    try {
      use(Stored(folder.child(folder_of(step)), step));
      return true;
    } catch (const DataError& error) {
      if (!folder.has(folder_of(step))) return std::nullopt;
      log::warn(fmt::format("the checkpoint of step {} cannot be used, {}: {}", step,
                            left > 1 ? fmt::format("so the one of step {} is tried", steps[left - 2])
                                     : std::string("and there is none before it"),
                            error.what()));
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  if (steps.empty()) return false;
  throw DataError(
      fmt::format("{}: none of its {} checkpoints can be used. To begin anew, use another folder. The newest: {}",
                  folder.path(), steps.size(), first_problem));
}

}  // namespace

Stored::Stored(Folder folder, std::optional<std::int64_t> step)
    : folder_(std::move(folder)), manifest_(manifest_in(folder_)) {
  if (step && *step != manifest_.step) {
    throw DataError(fmt::format("{}: is of step {}, so the folder was renamed. Give it its name back.",
                                folder_.path_of(kManifestFile), manifest_.step));
  }
  for (const Part part : kParts) require_size(folder_, part, manifest_.of(part).bytes);
}

nlohmann::json Stored::state() const {
  const std::string name = file_of(Part::kState);
  const std::string text = read_text(folder_, name, kMaxStateBytes);
  Recorder found;
  found.add(std::as_bytes(std::span(text)));
  require_same(Part::kState, found.record());
  nlohmann::json state = parse_state(folder_.path_of(name), text);
  const auto step = state.find("step");
  if (step == state.end() || *step != manifest_.step) {
    throw DataError(fmt::format("{}: is not of step {}, as the manifest says. Use another checkpoint.",
                                folder_.path_of(name), manifest_.step));
  }
  return state;
}

void Stored::require_same(Part part, const FileRecord& found) const {
  guard::require_same(folder_, file_of(part), found, manifest_.of(part));
}

void Stored::verify() const {
  for (const Part part : kParts) {
    Recorder found;
    read_file(folder_, file_of(part), manifest_.of(part).bytes,
              [&](std::span<const std::byte> bytes) { found.add(bytes); });
    require_same(part, found.record());
  }
  (void)state();
}

std::vector<std::int64_t> steps_in(const Folder& folder) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : folder.names()) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool use_newest(SystemCalls& calls, const std::filesystem::path& path, const std::function<void(const Stored&)>& use) {
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::not_found) return false;
  const Folder folder = Folder::open(calls, path, Missing::kIsAnError);
  // A writer goes on meanwhile, but removes a checkpoint only after a newer one is there.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (const std::optional<bool> found = try_newest(folder, use)) return *found;
  }
  throw DataError(
      fmt::format("{}: checkpoints are removed faster than they can be read. Keep more of them.", path.string()));
}

}  // namespace brigade::guard
