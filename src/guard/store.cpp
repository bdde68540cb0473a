#include "guard/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "brigade/base/error.h"
#include "brigade/base/log.h"
#include "guard/state.h"
#include "guard/stored.h"

namespace brigade::guard {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr const char* kLockFile = ".lock";

std::vector<std::string> files_of_checkpoints() {
  std::vector<std::string> files = {std::string(kManifestFile)};
  for (const Part part : kParts) files.push_back(file_of(part));
  return files;
}

CheckpointerOptions checked(CheckpointerOptions options) {
  if (options.folder.empty()) throw InvalidArgument("checkpoints: .folder is empty: say where they are to lie");
  if (options.keep_last < 1) {
    throw InvalidArgument(fmt::format(
        "checkpoints: .keep_last is {}: keep 1 or more, as the newest is what a run resumes from", options.keep_last));
  }
  if (options.keep_best && options.keep_best->metric.empty())
    throw InvalidArgument("checkpoints: .keep_best has no metric: name a number of state[\"metrics\"]");
  return options;
}

// Held until the descriptor is closed, at the latest by the end of the process.
Descriptor locked(const Folder& folder) {
  Descriptor file = folder.open_file(kLockFile, O_RDWR | O_CREAT, 0600);
  if (::flock(file.number(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) {
    throw DataError(
        fmt::format("{}: another run writes its checkpoints here. Give each run a folder of its own, or end "
                    "that one.",
                    folder.path()));
  }
  folder.fail(kLockFile, "cannot be locked", errno);
}

Producer producer_of(const std::string& text) {
  return [&text](const data::ByteSink& sink) { sink(std::as_bytes(std::span(text))); };
}

}  // namespace

Store::Store(SystemCalls& calls, CheckpointerOptions options)
    : options_(checked(std::move(options))),
      folder_(Folder::open(calls, options_.folder, Missing::kIsMade)),
      lock_(locked(folder_)) {
  remove_leftovers();
}

void Store::write(const Content& content) {
  if (content.step < 0)
    throw InvalidArgument(fmt::format("checkpoint: its step is {}; steps count from 0", content.step));
  nlohmann::json state = content.state;
  if (state.is_object()) state["step"] = content.step;
  const std::string text = to_text(state);
  require_newest(content.step);
  const std::string temporary = fmt::format("{}{}", kTemporary, folder_of(content.step));
  (void)folder_.remove(temporary, files_of_checkpoints());
  const bool replaces = folder_.has(folder_of(content.step));
  try {
    fill(temporary, content, text);
    take_place(temporary, content.step, replaces);
  } catch (...) {
    (void)folder_.remove(temporary, files_of_checkpoints());
    throw;
  }
  // Should this fail, nothing is removed: which of the two has the name after a power cut is not known.
  folder_.flush();
  metrics_.erase(content.step);
  if (replaces) warn_unless_removed(temporary);
  remove_old();
}

// A checkpoint that is damaged is in nobody's way.
void Store::require_newest(std::int64_t step) const {
  for (const std::int64_t other : steps_in(folder_)) {
    if (other <= step) continue;
    try {
      Stored(folder_.child(folder_of(other)), other).verify();
    } catch (const DataError&) {
      continue;
    }
    throw InvalidArgument(
        fmt::format("checkpoint: {} holds one of step {}, which is after step {}: resume from that one, or "
                    "use another folder for this run",
                    folder_.path(), other, step));
  }
}

void Store::fill(const std::string& temporary, const Content& content, const std::string& state) const {
  folder_.make(temporary);
  const Folder inside = folder_.child(temporary);
  const std::array<Producer, kPartCount> producers = {content.model, content.optimizer, producer_of(state)};
  Manifest manifest = {.step = content.step};
  for (const Part part : kParts) {
    const auto i = static_cast<std::size_t>(part);
    manifest.files[i] = write_file(inside, file_of(part), producers[i]);
  }
  write_file(inside, std::string(kManifestFile), producer_of(to_text(manifest)));
  inside.flush();
}

void Store::take_place(const std::string& temporary, std::int64_t step, bool replaces) const {
  const std::string name = folder_of(step);
  if (replaces) {
    folder_.exchange(temporary, name, fmt::format("{}old-{}", kTemporary, name));
  } else {
    folder_.rename(temporary, name);
  }
}

// Failures here lose nothing but space.
void Store::remove_old() {
  const std::vector<std::int64_t> steps = sound_steps();
  const auto kept = std::min(steps.size(), static_cast<std::size_t>(options_.keep_last));
  if (kept == 0) return;
  const std::int64_t oldest = steps[steps.size() - kept];
  const std::optional<std::int64_t> best = best_of(steps);
  for (const std::int64_t step : steps_in(folder_)) {
    if (step < oldest && step != best) remove_checkpoint(step);
  }
}

// Under its name it is whole or gone.
void Store::remove_checkpoint(std::int64_t step) const {
  const std::string temporary = fmt::format("{}old-{}", kTemporary, folder_of(step));
  try {
    folder_.rename(folder_of(step), temporary);
  } catch (const DataError& error) {
    log::warn(fmt::format("an old checkpoint stays: {}", error.what()));
    return;
  }
  warn_unless_removed(temporary);
}

void Store::warn_unless_removed(const std::string& temporary) const {
  if (folder_.remove(temporary, files_of_checkpoints())) return;
  log::warn(fmt::format("{} cannot be removed, which would make room. Remove it by hand.", folder_.path_of(temporary)));
}

void Store::remove_leftovers() const {
  for (const std::string& name : folder_.names()) {
    if (!name.starts_with(kTemporary) || folder_.remove(name, files_of_checkpoints())) continue;
    // Its name is not shown: whoever made it chose it.
    log::warn(fmt::format(
        "{}: a folder that begins with {} cannot be removed: it holds files that are no checkpoint's. Remove "
        "it by hand.",
        folder_.path(), kTemporary));
  }
}

std::vector<std::int64_t> Store::sound_steps() const {
  std::vector<std::int64_t> steps = steps_in(folder_);
  std::erase_if(steps, [this](std::int64_t step) {
    try {
      (void)Stored(folder_.child(folder_of(step)), step);
      return false;
    } catch (const DataError&) {
      return true;
    }
  });
  return steps;
}

std::optional<std::int64_t> Store::best_of(const std::vector<std::int64_t>& steps) {
  if (!options_.keep_best) return std::nullopt;
  std::optional<std::int64_t> best;
  for (const std::int64_t step : steps) {
    const std::optional<double> metric = metric_of(step);
    if (!metric) continue;
    const bool largest = options_.keep_best->goal == Goal::kLargest;
    if (!best || (largest ? *metric > *metric_of(*best) : *metric < *metric_of(*best))) best = step;
  }
  return best;
}

std::optional<double> Store::metric_of(std::int64_t step) {
  if (const auto known = metrics_.find(step); known != metrics_.end()) return known->second;
  std::optional<double>& metric = metrics_[step];
  try {
    const nlohmann::json state = Stored(folder_.child(folder_of(step)), step).state();
    const auto metrics = state.find("metrics");
    if (metrics == state.end() || !metrics->is_object()) return metric;
    const auto found = metrics->find(options_.keep_best->metric);
    if (found != metrics->end() && found->is_number()) metric = found->get<double>();
  } catch (const DataError&) {
    // damaged: no candidate
  }
  return metric;
}

}  // namespace brigade::guard
