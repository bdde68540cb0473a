#include "brigade/runtime/axis.h"

#include <ATen/Parallel.h>
#include <c10/util/SmallVector.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "axis_members.h"
#include "brigade/base/environment.h"
#include "brigade/base/error.h"
#include "brigade/comm/thread_group.h"
#include "brigade/runtime/body.h"
#include "caller_state.h"
#include "failure.h"
#include "presence.h"
#include "runtime.h"

namespace brigade {
namespace {

// The axis that this thread runs a body of, if any. One flat axis at a time: pmap does not nest.
thread_local Axis* current_axis = nullptr;
thread_local int current_position = 0;

class PlaceGuard {
 public:
  PlaceGuard(Axis* axis, int position) noexcept
      : axis_(std::exchange(current_axis, axis)), position_(std::exchange(current_position, position)) {}
  ~PlaceGuard() {
    current_axis = axis_;
    current_position = position_;
  }
  PlaceGuard(const PlaceGuard&) = delete;
  PlaceGuard& operator=(const PlaceGuard&) = delete;

 private:
  Axis* axis_;
  int position_;
};

void require_usable(const std::string& name, const std::vector<Device>& wanted, std::source_location site) {
  const ErrorContext context{.axis = name, .site = site};
  if (wanted.empty()) {
    throw InvalidArgument("no devices: `devices` is empty; leave it out to use all, or name at least one", context);
  }
  const auto& known = devices();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::find(known.begin(), known.end(), wanted[i]) == known.end()) {
      throw InvalidArgument(
          fmt::format("device {} is not among the {} devices of this process ({} to {}); BRIGADE_CPU_DEVICES or "
                      "set_cpu_devices() gives more",
                      to_string(wanted[i]), known.size(), to_string(known.front()), to_string(known.back())),
          context);
    }
    if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted[i]) !=
        wanted.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw InvalidArgument(fmt::format("device {} stands twice in `devices`", to_string(wanted[i])), context);
    }
  }
}

// Spinning pays only when each device has a core of its own.
std::chrono::nanoseconds spin_for(std::size_t count) {
  return static_cast<int>(count) <= Runtime::instance().cores() ? kSpinTime : std::chrono::nanoseconds(0);
}

// Those of a group that have some ranks in it.
struct Subgroup {
  comm::Group* of;
  std::vector<int> ranks;
};

struct SubgroupView {
  comm::Group* of;
  std::span<const int> ranks;
};

std::string launch_text(const std::string& name, std::source_location site) {
  return fmt::format("the pmap over {} at {}", axis_text(name), to_string(site));
}

// Finds a Subgroup by its view, without making one.
struct IsBefore {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const {
    if (a.of != b.of) return std::less<>{}(a.of, b.of);
    return std::lexicographical_compare(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end());
  }
};

}  // namespace

// What the devices of one axis share while they run, one launch at a time.
class Axis::Seats {
 public:
  Seats(const std::string& name, const std::vector<Device>& devices, std::source_location site)
      : spin(spin_for(devices.size())),
        group(static_cast<int>(devices.size()),
              {.time_without_progress = environment().deadline, .spin = spin.count() > 0, .name = axis_text(name)}),
        seats(devices.size()),
        presence(launch_text(name, site), devices) {}

  // The devices that collectives over some of the axes run over.
  struct Part {
    Dims dims;
    std::string name;
    comm::Group* members;
  };

  struct alignas(64) Seat {
    std::chrono::nanoseconds busy{0};
    std::deque<Part> parts = {};  // those asked for so far; they stay where they are
    std::map<Subgroup, comm::Group*, IsBefore> subgroups = {};
  };

  Seat& seat(int position) { return seats[static_cast<std::size_t>(position)]; }

  const std::chrono::nanoseconds spin;
  comm::ThreadGroup group;
  std::vector<Seat> seats;
  Failures failures;
  Presence presence;
};

Axis::Axis(std::string name, std::vector<MeshAxis> axes, std::vector<Device> devices, std::source_location site)
    : name_(std::move(name)),
      axes_(std::move(axes)),
      devices_(std::move(devices)),
      site_(site),
      seats_(std::make_unique<Seats>(name_, devices_, site_)) {}

Axis::~Axis() = default;

std::shared_ptr<Axis> Axis::create(std::string name, std::vector<Device> devices, std::source_location site) {
  require_usable(name, devices, site);
  std::vector<MeshAxis> axes = {{.name = name, .size = static_cast<std::int64_t>(devices.size())}};
  return std::shared_ptr<Axis>(new Axis(std::move(name), std::move(axes), std::move(devices), site));
}

std::shared_ptr<Axis> Axis::create(Mesh mesh, std::vector<Device> devices, std::source_location site) {
  require_usable(mesh.name(), devices, site);
  if (mesh.size() != static_cast<std::int64_t>(devices.size())) {
    throw InvalidArgument(fmt::format("a mesh of {} devices was given {}", mesh.size(), devices.size()),
                          {.axis = mesh.name(), .site = site});
  }
  return std::shared_ptr<Axis>(new Axis(mesh.name(), mesh.axes(), std::move(devices), site));
}

comm::Group& Axis::group(int position) { return seats_->group.member(position); }

AxisPlace Axis::place(int position, const AxisNames& names, std::source_location site) {
  const Dims dims =
      dims_of(axes_, names, [&]() -> ErrorContext { return {.axis = name_, .device = position, .site = site}; });
  std::deque<Seats::Part>& parts = seats_->seat(position).parts;
  auto part = std::find_if(parts.begin(), parts.end(), [&](const Seats::Part& known) { return known.dims == dims; });
  if (part == parts.end()) {
    const std::vector<int> positions = positions_along(axes_, dims, position);
    const bool all = static_cast<int>(positions.size()) == size() && std::is_sorted(positions.begin(), positions.end());
    comm::Group& whole = group(position);
    part = parts.insert(part, {dims, names.text(), all ? &whole : &whole.among(positions)});
  }
  return {.axis = shared_from_this(), .position = position, .name = part->name, .members = part->members};
}

comm::Group& Axis::among(int position, comm::Group& members, std::span<const int> ranks) {
  auto& subgroups = seats_->seat(position).subgroups;
  auto known = subgroups.find(SubgroupView{&members, ranks});
  if (known == subgroups.end()) {
    known = subgroups.emplace(Subgroup{&members, {ranks.begin(), ranks.end()}}, &members.among(ranks)).first;
  }
  return *known->second;
}

void Axis::run(c10::function_ref<void(int position)> body) {
  if (inside_body()) {
    throw AxisError(
        fmt::format("a pmap over {} was called inside the body of one over {}: they do not nest, as every device is "
                    "taken already. Give one pmap two named axes over its devices instead (.mesh), or map the inner "
                    "function with a loop",
                    axis_text(name_), axis_text(current_axis->name())),
        {.axis = name_, .device = current_position, .site = site_});
  }
  Runtime& runtime = Runtime::instance();
  const Runtime::Lease lease(runtime, devices_, [&] { return launch_text(name_, site_); });
  seats_->group.reset();
  seats_->presence.begin();
  seats_->failures.prepare(devices_.size());

  const CallerState state;
  const auto body_as_caller = [&](int position) {
    const CallerState::Lent lent(state);
    body(position);
  };
  const auto as_device = [&](int position) noexcept { run_at(position, body_as_caller); };
  // One closure per worker, alive until every device has left.
  struct Task {
    decltype(as_device)* run;
    int position;
    void operator()() const noexcept { (*run)(position); }
  };
  c10::SmallVector<Task, 8> tasks;
  tasks.reserve(devices_.size());
  for (int position = 0; position < size(); ++position) tasks.push_back({&as_device, position});

  const auto worker = [&](const Task& task) {
    return runtime.worker(devices_[static_cast<std::size_t>(task.position)]);
  };
  for (const Task& task : tasks) {
    if (Worker* w = worker(task)) {
      w->set_spin(seats_->spin);
      w->post(task);
    }
  }
  bool takes_part = false;
  for (const Task& task : tasks) {
    if (worker(task) == nullptr) {  // device 0: this thread itself
      const Runtime::Borrowed borrowed(runtime, devices_[static_cast<std::size_t>(task.position)]);
      const CallerState::Kept kept;
      run_at(task.position, body);
      takes_part = true;
    }
  }
  // A caller that is no device would spin on a core that a device needs.
  const auto spin = takes_part ? seats_->spin : std::chrono::nanoseconds(0);
  for (const Task& task : tasks) {
    if (Worker* w = worker(task)) w->wait(spin);
  }
  seats_->presence.end();
  seats_->failures.rethrow(*this, site_);
}

void Axis::run_at(int position, c10::function_ref<void(int position)> body) noexcept {
  const PlaceGuard place(this, position);
  const auto start = Deadline::Clock::now();
  try {
    body(position);
    seats_->group.leave(position);
  } catch (...) {
    const std::string text = describe_current_exception();
    seats_->failures.add(position, std::current_exception());
    seats_->presence.fail(position, text);
    seats_->group.abort(position, text);
    seats_->group.give_up(position);
  }
  seats_->presence.leave(position);
  seats_->seat(position).busy += Deadline::Clock::now() - start;
}

std::vector<DeviceStatistics> Axis::statistics() const {
  std::vector<DeviceStatistics> result;
  for (int position = 0; position < size(); ++position) {
    const comm::Statistics spent = seats_->group.member(position).statistics();
    result.push_back(
        {.busy = seats_->seat(position).busy, .moving = spent.moving, .waiting = spent.waiting, .bytes = spent.bytes});
  }
  return result;
}

void Axis::reset_statistics() {
  for (int position = 0; position < size(); ++position) {
    seats_->group.member(position).reset_statistics();
    seats_->seat(position).busy = {};
  }
}

class BodyState::Kept {
 public:
  Kept() : axis(current_axis), position(current_position) {}

  Axis* axis;
  int position;
  CallerState caller;
  int threads = at::get_num_threads();
};

class BodyState::Lent::Taken {
 public:
  explicit Taken(const Kept& kept)
      : before_(at::get_num_threads()), place_(kept.axis, kept.position), caller_(kept.caller) {
    set_thread_intra_op(kept.threads);
  }
  ~Taken() { set_thread_intra_op(before_); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  int before_;
  PlaceGuard place_;
  CallerState::Lent caller_;
};

BodyState::BodyState(std::unique_ptr<Kept> kept) : kept_(std::move(kept)) {}
BodyState::~BodyState() = default;
BodyState::BodyState(BodyState&&) noexcept = default;
BodyState& BodyState::operator=(BodyState&&) noexcept = default;

BodyState BodyState::current() {
  if (!inside_body()) throw AxisError("this thread runs no body of a pmap, so it has no state of one to lend");
  return BodyState(std::make_unique<Kept>());
}

BodyState::Lent::Lent(const BodyState& state) : taken_(std::make_unique<Taken>(*state.kept_)) {}
BodyState::Lent::~Lent() = default;

OneThreadInOperators::OneThreadInOperators() noexcept : before_(at::get_num_threads()) { set_thread_intra_op(1); }
OneThreadInOperators::~OneThreadInOperators() { set_thread_intra_op(before_); }

AxisPlace place_of_body(std::source_location site) {
  if (current_axis == nullptr)
    throw AxisError("this thread runs no body of a pmap, so it has no place among devices", {.site = site});
  return {.axis = current_axis->shared_from_this(),
          .position = current_position,
          .name = current_axis->name(),
          .members = &current_axis->group(current_position)};
}

bool inside_body() noexcept { return current_axis != nullptr; }

AxisPlace find_axis(const AxisNames& names, std::source_location site) {
  if (current_axis == nullptr) {
    throw AxisError(
        fmt::format("axis \"{}\" is not in scope: collectives and axis_index are called inside the body of a "
                    "pmap, and this thread runs none",
                    names.text()),
        {.axis = names.text(), .site = site});
  }
  return current_axis->place(current_position, names, site);
}

}  // namespace brigade
