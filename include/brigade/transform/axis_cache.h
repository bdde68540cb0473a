// The axes of one pmap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/runtime/device.h"
#include "brigade/runtime/mesh.h"

namespace brigade::detail {

// The devices of a pmap, by the number of them that a call needs. Shared by its copies.
class AxisCache {
 public:
  // With a mesh, `name` is that of the mesh and every size its size.
  AxisCache(std::string name, std::optional<Mesh> mesh, std::optional<std::vector<Device>> devices,
            std::source_location site)
      : name_(std::move(name)), mesh_(std::move(mesh)), devices_(std::move(devices)), site_(site) {}

  // Throws InvalidArgument when there are not as many devices.
  std::shared_ptr<Axis> get(std::int64_t size);

  // The axis of the latest get(); null before.
  std::shared_ptr<Axis> latest();

 private:
  std::string name_;
  std::optional<Mesh> mesh_;
  std::optional<std::vector<Device>> devices_;
  std::source_location site_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Axis>> axes_;
  std::shared_ptr<Axis> latest_;
};

}  // namespace brigade::detail
