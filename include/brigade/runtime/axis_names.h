// How a collective names the devices that it runs over.
#pragma once

#include <c10/util/SmallVector.h>

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace brigade {

// One axis name or several: "devices", or {"host", "device"}. Participants over several are in row-major order of the
// names as listed, the first varying slowest.
//
// A type for parameters: the characters stay the caller's, as with std::string_view.
class AxisNames {
 public:
  template <std::convertible_to<std::string_view> Name>
  AxisNames(const Name& name) : names_{std::string_view(name)} {}  // NOLINT(google-explicit-constructor)
  AxisNames(std::initializer_list<std::string_view> names) : names_(names) {}
  AxisNames(const std::vector<std::string>& names)  // NOLINT(google-explicit-constructor)
      : names_(names.begin(), names.end()) {}

  auto begin() const noexcept { return names_.begin(); }
  auto end() const noexcept { return names_.end(); }
  std::size_t size() const noexcept { return names_.size(); }

  std::string text() const;  // `host, device`

 private:
  c10::SmallVector<std::string_view, 4> names_;
};

}  // namespace brigade
