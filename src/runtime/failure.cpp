#include "failure.h"

#include <c10/util/Type.h>
#include <fmt/format.h>

#include <algorithm>

#include "axis_members.h"
#include "brigade/base/error.h"
#include "brigade/base/log.h"

namespace brigade {
namespace {

std::mutex report_mutex;
std::optional<FailureReport> report;

struct Described {
  std::string type;
  std::string message;
  bool is_release = false;
};

Described described(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Aborted& e) {
    return {"brigade::Aborted", e.what(), true};
  } catch (const std::exception& e) {
    return {c10::demangle(typeid(e).name()), e.what(), false};
  } catch (...) {
    return {"an exception that is no std::exception", "", false};
  }
}

constexpr std::size_t kOthersLogged = 3;

// One entry. The caller sees the primary failure's own text, so this has what it lacks: where it was, and what others
// threw, of which last_failure() has all.
void log_report(const FailureReport& failed) {
  const auto& first = failed.failures.front();
  std::string text = fmt::format("{} at {}: position {} ({}) failed first, with {}", axis_text(failed.axis),
                                 to_string(failed.site), first.position, to_string(first.device), first.type);
  std::string same;
  std::size_t others = 0;
  for (std::size_t i = 1; i < failed.failures.size(); ++i) {
    const auto& other = failed.failures[i];
    if (other.type == first.type && other.message == first.message) {
      same += fmt::format("{}{}", same.empty() ? "" : ", ", other.position);
    } else if (others++ < kOthersLogged) {
      text += fmt::format("; position {} threw {}: {}", other.position, other.type, other.message);
    }
  }
  if (others > kOthersLogged) text += fmt::format("; and {} more threw", others - kOthersLogged);
  if (!same.empty()) text += fmt::format("; the same at position {}", same);
  log::warn(text);
}

// The report of one launch, and its primary failure.
std::pair<FailureReport, std::exception_ptr> make_report(
    const Axis& axis, std::source_location site, const std::vector<std::pair<int, std::exception_ptr>>& entries) {
  FailureReport failed{.axis = axis.name(), .site = site, .failures = {}, .released = {}};
  std::exception_ptr primary;
  for (const auto& [position, error] : entries) {
    const Described d = described(error);
    if (d.is_release) {
      failed.released.push_back(position);
      continue;
    }
    if (!primary) primary = error;
    failed.failures.push_back({.position = position,
                               .device = axis.devices()[static_cast<std::size_t>(position)],
                               .type = d.type,
                               .message = d.message});
  }
  std::sort(failed.released.begin(), failed.released.end());
  // A body may throw Aborted of its own accord, and then there is nothing behind it.
  return {std::move(failed), primary ? primary : entries.front().second};
}

}  // namespace

std::string describe_current_exception() noexcept {
  try {
    const Described d = described(std::current_exception());
    return d.message.empty() ? d.type : d.type + ": " + d.message;
  } catch (...) {
    return {};
  }
}

void Failures::prepare(std::size_t devices) {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  entries_.reserve(devices);
}

void Failures::add(int position, std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  entries_.emplace_back(position, std::move(error));  // has room
}

void Failures::rethrow(const Axis& axis, std::source_location site) {
  if (entries_.empty()) return;
  std::exception_ptr primary = entries_.front().second;
  try {
    auto [failed, first] = make_report(axis, site, entries_);
    primary = first;
    if (!failed.failures.empty()) log_report(failed);
    const std::lock_guard lock(report_mutex);
    report = std::move(failed);
  } catch (...) {
    // Then there is no report. Whatever went wrong in making it must not take the place of the body's exception.
  }
  entries_.clear();
  std::rethrow_exception(primary);
}

std::optional<FailureReport> last_failure() {
  const std::lock_guard lock(report_mutex);
  return report;
}

}  // namespace brigade
