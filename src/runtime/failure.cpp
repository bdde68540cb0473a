#include "failure.h"

#include <c10/util/Type.h>
#include <fmt/format.h>

#include <algorithm>

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

// The caller sees the primary failure itself, so what the log adds to it is for those who ask; what others threw
// besides would be lost.
void log_report(const FailureReport& failed) {
  for (const auto& entry : failed.failures) {
    const std::string text = fmt::format("axis \"{}\" at {}: position {} ({}) threw {}{}{}", failed.axis,
                                         to_string(failed.site), entry.position, to_string(entry.device), entry.type,
                                         entry.message.empty() ? "" : ": ", entry.message);
    if (&entry == failed.failures.data()) {
      log::info(text);
    } else {
      log::warn(text + " (later than the failure that the caller gets)");
    }
  }
}

}  // namespace

std::string describe(const std::exception_ptr& error) {
  const Described d = described(error);
  return d.message.empty() ? d.type : d.type + ": " + d.message;
}

void Failures::add(int position, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({position, std::move(error)});
}

void Failures::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

void Failures::rethrow(const Axis& axis, std::source_location site) {
  if (entries_.empty()) return;
  FailureReport failed{.axis = axis.name(), .site = site, .failures = {}, .released = {}};
  std::exception_ptr primary;
  for (const Entry& entry : entries_) {
    const Described d = described(entry.error);
    if (d.is_release) {
      failed.released.push_back(entry.position);
      continue;
    }
    if (!primary) primary = entry.error;
    failed.failures.push_back({.position = entry.position,
                               .device = axis.devices()[static_cast<std::size_t>(entry.position)],
                               .type = d.type,
                               .message = d.message});
  }
  // A body may throw Aborted of its own accord, and then there is nothing behind it.
  if (!primary) primary = entries_.front().error;
  entries_.clear();
  std::sort(failed.released.begin(), failed.released.end());
  log_report(failed);
  {
    const std::lock_guard lock(report_mutex);
    report = std::move(failed);
  }
  std::rethrow_exception(primary);
}

std::optional<FailureReport> last_failure() {
  const std::lock_guard lock(report_mutex);
  return report;
}

}  // namespace brigade
