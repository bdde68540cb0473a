#include "brigade/transform/axis_cache.h"

#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::detail {

std::shared_ptr<Axis> AxisCache::get(std::int64_t size) {
  const std::lock_guard lock(mutex_);
  if (const auto found = axes_.find(size); found != axes_.end()) return latest_ = found->second;
  const ErrorContext context{.axis = name_, .site = site_};
  std::vector<Device> chosen = devices_ ? *devices_ : devices();
  const auto available = static_cast<std::int64_t>(chosen.size());
  if (devices_ && size != available) {
    throw InvalidArgument(fmt::format("{} is {} and `devices` names {}: leave one of them out, or make them equal",
                                      mesh_ ? "the size of the mesh" : "axis_size", size, available),
                          context);
  }
  if (size > available) {
    const std::string fewer =
        mesh_ ? "make the mesh smaller"
              : fmt::format("give the mapped axis at most {} rows (pad_and_mask(..., {}) splits a batch among them)",
                            available, available);
    const std::string more =
        size <= kMaximumCpuDevices
            ? fmt::format(", or start with BRIGADE_CPU_DEVICES={} or call set_cpu_devices({}) first", size, size)
            : "";
    throw InvalidArgument(
        fmt::format("the axis has size {} and there are {} devices: {}{}", size, available, fewer, more), context);
  }
  if (size < 1) {
    throw InvalidArgument(fmt::format("a mapped axis of size {} leaves nothing to run: its size is the number of "
                                      "devices, from 1 to {}",
                                      size, available),
                          context);
  }
  chosen.resize(static_cast<std::size_t>(size));
  return latest_ = axes_[size] =
             mesh_ ? Axis::create(*mesh_, std::move(chosen), site_) : Axis::create(name_, std::move(chosen), site_);
}

std::shared_ptr<Axis> AxisCache::latest() {
  const std::lock_guard lock(mutex_);
  return latest_;
}

}  // namespace brigade::detail
