// A named axis: the devices that run one body together, and what a thread knows about its place among them.
#pragma once

#include <c10/util/FunctionRef.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/runtime/axis_names.h"
#include "brigade/runtime/device.h"
#include "brigade/runtime/mesh.h"

namespace brigade {

// Where one device's time went, over the launches of an axis.
struct DeviceStatistics {
  std::chrono::nanoseconds busy{0};     // in the body, from its start to its return
  std::chrono::nanoseconds moving{0};   // of busy: copying and adding in collectives
  std::chrono::nanoseconds waiting{0};  // of busy: for other devices, in collectives
  std::int64_t bytes = 0;               // given to collectives

  std::chrono::nanoseconds computing() const noexcept { return busy - moving - waiting; }
};

struct AxisPlace;

// Shared, as the graph of a body's result may call collectives of its axis again, in backward.
class Axis : public std::enable_shared_from_this<Axis> {
 public:
  // Throws InvalidArgument when `devices` is empty, names one twice, or one that this process does not have. `site` is
  // where the caller wrote the axis, for messages.
  static std::shared_ptr<Axis> create(std::string name, std::vector<Device> devices,
                                      std::source_location site = std::source_location::current());
  // With a name for every axis of a mesh. Throws InvalidArgument also when there are not as many devices as its size.
  static std::shared_ptr<Axis> create(Mesh mesh, std::vector<Device> devices,
                                      std::source_location site = std::source_location::current());
  ~Axis();

  const std::string& name() const noexcept { return name_; }            // of a mesh: `host, device`
  const std::vector<MeshAxis>& axes() const noexcept { return axes_; }  // one, or those of the mesh
  const std::vector<Device>& devices() const noexcept { return devices_; }
  int size() const noexcept { return static_cast<int>(devices_.size()); }

  // Runs body(i) for each position i, on that position's device, all at once; returns when all have left. Launches that
  // share a device take turns. The caller's grad mode, inference mode, autocast (without its cache) and rounding reach the
  // devices; those that a body leaves changed are put back.
  //
  // When bodies throw, the others are released from their collectives, and the first exception in time that is not such
  // a release is rethrown, unchanged, once every device has left; last_failure() and the log have the rest. The axis is
  // usable again at once. Throws AxisError when called from inside a body.
  void run(c10::function_ref<void(int position)> body);

  // All devices, as the one at `position` sees them.
  comm::Group& group(int position);

  // The devices that share the place of `position` on every axis that is not among `names`. What it finds it keeps, so
  // the second call for the same names allocates nothing. Only on the thread that runs the body of `position`. Throws as
  // find_axis().
  AxisPlace place(int position, const AxisNames& names, std::source_location site);

  // The devices that have `ranks` in `members`, which is one of the groups of `position`, in that order; kept likewise. All of
  // them ask for it, and `ranks` include the own one.
  comm::Group& among(int position, comm::Group& members, std::span<const int> ranks);

  // Indexed by position; since the last reset. Not while a launch is running.
  std::vector<DeviceStatistics> statistics() const;
  void reset_statistics();

 private:
  class Seats;

  Axis(std::string name, std::vector<MeshAxis> axes, std::vector<Device> devices, std::source_location site);
  void run_at(int position, c10::function_ref<void(int position)> body) noexcept;

  std::string name_;
  std::vector<MeshAxis> axes_;
  std::vector<Device> devices_;
  std::source_location site_;
  std::unique_ptr<Seats> seats_;
};

// One device's place among those that a collective runs over. It keeps the axis alive, and with it the rest.
struct AxisPlace {
  std::shared_ptr<Axis> axis;
  int position = 0;                // on the whole axis, as messages count devices
  std::string_view name = {};      // of the axis, or of the axes of a mesh, as the collective gave them
  comm::Group* members = nullptr;  // those devices, as this one sees them

  comm::Group& group() const noexcept { return *members; }
  int rank() const noexcept { return members->rank(); }
  int size() const noexcept { return members->size(); }

  // The place among those that have `ranks` here.
  AxisPlace among(std::span<const int> ranks) const {
    AxisPlace place = *this;
    place.members = &axis->among(position, *members, ranks);
    return place;
  }
};

// The calling thread's place on the axis called `names`, or on several axes of a mesh together. Throws AxisError, listing
// the names in scope, when one of them is not; InvalidArgument when one stands twice, or there is none.
AxisPlace find_axis(const AxisNames& names, std::source_location site);

// The calling thread's place on the whole axis of the body that it runs. Throws AxisError outside one.
AxisPlace place_of_body(std::source_location site);

// Whether the calling thread runs a body now.
bool inside_body() noexcept;

// What went wrong in the last launch of this process that failed.
struct FailureReport {
  struct Entry {
    int position = 0;  // along the axis
    Device device = {};
    std::string type;  // of the exception, such as "std::runtime_error"
    std::string message;
  };
  std::string axis;
  std::source_location site;    // where the axis was written
  std::vector<Entry> failures;  // in order of time, the primary one first; releases of others are left out
  std::vector<int> released;    // positions that were released from a collective
};

std::optional<FailureReport> last_failure();

}  // namespace brigade
