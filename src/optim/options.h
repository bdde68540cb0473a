// Options of update rules: their checks, and their words.
#pragma once

#include <string>
#include <string_view>

namespace brigade::optim {

// Throw InvalidArgument, which begins with the name of the rule.
void check_non_negative(std::string_view rule, std::string_view option, double value);
void check_fraction(std::string_view rule, std::string_view option, double value);  // from 0 up to, but not, 1

// "sgd, momentum 0.9, nesterov": options are left out when they are their defaults.
class Description {
 public:
  explicit Description(std::string_view rule) : text_(rule) {}

  Description& option(std::string_view name, double value, double by_default);
  Description& flag(std::string_view name, bool is_set);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace brigade::optim
