// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brigade::cli {

std::string grouped(std::int64_t number);  // 1234567 as "1,234,567"

std::string clock_text(double seconds);  // 83 as "1:23"

// "1 device", "2 devices".
std::string counted(std::int64_t count, std::string_view what);

}  // namespace brigade::cli
