#include "brigade/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "brigade/base/environment.h"

namespace brigade::log {
namespace {

// Statics of this file are leaked on purpose: device threads may log while statics are being destroyed.

spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("brigade", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("brigade: %^%l%$: %v");
    made->set_level(spdlog::level::from_str(environment().log_level));
    return made;
  }();
  return *instance;
}

}  // namespace

void debug(std::string_view message) { logger().debug("{}", message); }
void info(std::string_view message) { logger().info("{}", message); }
void warn(std::string_view message) { logger().warn("{}", message); }
void error(std::string_view message) { logger().error("{}", message); }

void warn_once(std::string_view key, std::string_view message) {
  static auto* const mutex = new std::mutex;
  static auto* const seen = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(*mutex);
  if (seen->emplace(key).second) warn(message);
}

}  // namespace brigade::log
