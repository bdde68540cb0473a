// Log lines on standard error, at the level of BRIGADE_LOG (default: warn).
//
// Thin functions over spdlog, so that public headers do not bring it.
#pragma once

#include <string_view>

namespace brigade::log {

void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

// Warns the first time `key` is seen in this process, and is silent afterwards.
void warn_once(std::string_view key, std::string_view message);

}  // namespace brigade::log
