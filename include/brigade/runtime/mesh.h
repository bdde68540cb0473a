// Named sizes over one flat set of devices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <vector>

namespace brigade {

struct MeshAxis {
  std::string name = {};
  std::int64_t size = 1;
};

// Mesh{{"host", 2}, {"device", 4}} gives 8 devices two names. Device number d of the flat set stands at row d / 4 of "host"
// and column d % 4 of "device": row-major, the first name varies slowest. A collective over "device" runs among the 4
// devices that share a row, one over {"host", "device"} among all 8.
class Mesh {
 public:
  // Throws InvalidArgument when there is no axis, a name is empty or stands twice, a size is below 1, or their product
  // is more than an int holds.
  Mesh(std::initializer_list<MeshAxis> axes, std::source_location site = std::source_location::current());
  explicit Mesh(std::vector<MeshAxis> axes, std::source_location site = std::source_location::current());

  const std::vector<MeshAxis>& axes() const noexcept { return axes_; }
  std::int64_t size() const noexcept { return size_; }  // number of devices, the product of all sizes
  std::string name() const;                             // all names, as in `host, device`

 private:
  std::vector<MeshAxis> axes_;
  std::int64_t size_ = 1;
};

}  // namespace brigade
