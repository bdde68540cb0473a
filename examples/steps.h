// What the training examples share: how many steps they take. The first argument says it; without one it is `usual`.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "brigade/base/error.h"

inline std::int64_t steps_from(int argc, char** argv, std::int64_t usual) {
  if (argc == 1) return usual;
  const std::string_view text = argv[1];
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (argc == 2 && error == std::errc{} && end == text.data() + text.size() && steps >= 1) return steps;
  throw brigade::InvalidArgument("usage: " + std::string(argv[0]) + " [STEPS], a whole number above 0");
}
