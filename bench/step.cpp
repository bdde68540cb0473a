// A training step of a 784-H-10 perceptron with plain SGD on two devices: against one device in a hand-written libtorch
// loop, PyTorch DistributedDataParallel (Gloo, one process a device) and JAX pmap, all on one thread a device, by turns
// in one run.
//
// All sides compute the mean cross-entropy of integer labels, its gradient and a plain SGD update, on data of one
// shape. The loop and DDP update in place, JAX into donated buffers. Ours makes new parameters, as functional programs
// do, and writes the update as `torch::sub(w, g, rate)`, one pass over the weights: that is what the goals are judged
// on. The same step with the update as examples/jax_mlp.cpp prints it, `w - rate * g`, two passes, is measured beside
// it, and so are two of the hand-written loops side by side that never meet: cores that share power, caches or memory
// slow each other down, and what these two lose against one is lost to any two devices.
//
// Before that, what a call of a pmap costs by itself.
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "brigade/brigade.h"
#include "support/report.h"
#include "support/rounds.h"
#include "training/peers.h"

namespace {

namespace bench = brigade::bench;
using namespace brigade;

constexpr int kDevices = 2;
constexpr double kLearningRate = bench::kLearningRate;
constexpr auto kRoundTime = std::chrono::milliseconds(300);

struct Shape {
  std::int64_t batch;
  std::int64_t hidden;
  double single_goal, ddp_goal, jax_goal;
};

constexpr Shape kShapes[] = {
    {.batch = 32, .hidden = 128, .single_goal = 0.75, .ddp_goal = 5.0, .jax_goal = 1.7},
    {.batch = 256, .hidden = 1024, .single_goal = 0.85, .ddp_goal = 1.3, .jax_goal = 1.0},
};

struct Params {
  torch::Tensor w1, b1, w2, b2;
};

Params init(std::int64_t hidden) {
  const auto [k1, k2] = random::split<2>(random::key(0));
  return {random::normal(k1, {784, hidden}) * 0.02, torch::zeros(hidden), random::normal(k2, {hidden, 10}) * 0.02,
          torch::zeros(10)};
}

torch::Tensor loss_fn(const Params& p, const torch::Tensor& x, const torch::Tensor& labels) {
  const auto h = torch::relu(torch::matmul(x, p.w1) + p.b1);
  return torch::cross_entropy_loss(torch::matmul(h, p.w2) + p.b2, labels);
}

// One device, without Brigade: what one writes by hand for speed.
class SingleLoop {
 public:
  explicit SingleLoop(const Shape& shape)
      : p_(init(shape.hidden)),
        x_(random::normal(random::key(1), {shape.batch, 784})),
        labels_(random::randint(random::key(2), {shape.batch}, 0, 10).to(torch::kLong)) {
    for (auto* t : {&p_.w1, &p_.b1, &p_.w2, &p_.b2}) t->requires_grad_();
  }

  void step() {
    const std::vector<torch::Tensor> all = {p_.w1, p_.b1, p_.w2, p_.b2};
    const auto grads = torch::autograd::grad({loss_fn(p_, x_, labels_)}, all);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < all.size(); ++i) all[i].sub_(grads[i], kLearningRate);
  }

 private:
  Params p_;
  torch::Tensor x_, labels_;
};

// How the new parameters come about.
struct Fused {
  torch::Tensor operator()(const torch::Tensor& w, const torch::Tensor& g) const {
    return torch::sub(w, g, kLearningRate);
  }
};
struct AsPrinted {
  torch::Tensor operator()(const torch::Tensor& w, const torch::Tensor& g) const { return w - kLearningRate * g; }
};

// Gradient, mean and update on two devices, as in examples/jax_mlp.cpp.
template <class Update>
class OurStep {
 public:
  explicit OurStep(const Shape& shape)
      : params_(replicate(init(shape.hidden))),
        x_(random::normal(random::key(1), {kDevices, shape.batch, 784})),
        labels_(random::randint(random::key(2), {kDevices, shape.batch}, 0, 10).to(torch::kLong)) {}

  void step() {
    static const auto train_step = pmap(
        [](Params p, torch::Tensor x, torch::Tensor labels) {
          const Params grads = lax::pmean(grad(loss_fn)(p, x, labels), "devices");
          return tree::map(Update(), p, grads);
        },
        {.axis_name = "devices"});
    params_ = train_step(std::move(params_), x_, labels_);
  }

 private:
  Sharded<Params> params_;
  torch::Tensor x_, labels_;
};

template <class Side>
double step_microseconds(Side& side, int calls) {
  return 1e-3 * bench::nanoseconds_per_call(calls, [&] { side.step(); });
}

// A hand-written loop on each core, which never meet.
class Apart {
 public:
  explicit Apart(const Shape& shape) {
    for (int i = 0; i < kDevices; ++i) loops_.emplace_back(shape);
  }

  double microseconds(int calls) {
    std::barrier together(kDevices);
    const auto run = [&](SingleLoop& loop) {
      together.arrive_and_wait();
      const double time = step_microseconds(loop, calls);
      together.arrive_and_wait();
      return time;
    };
    double first = 0, second = 0;
    std::thread other([&] { second = run(loops_[1]); });
    first = run(loops_[0]);
    other.join();
    return std::max(first, second);
  }

 private:
  std::vector<SingleLoop> loops_;
};

// What ours is measured against, with the rounds that were; without a program when it is absent.
struct Contender {
  std::string name;
  std::optional<double> goal;
  std::unique_ptr<bench::TrainingPeer> program = nullptr;
  std::vector<bench::Round> rounds = {};
};

Contender start(bench::Library library, double goal, const bench::Setting& setting, bench::Report& report) {
  auto program = std::make_unique<bench::TrainingPeer>(library, setting, report);
  if (!program->is_there()) return {.name = program->name(), .goal = goal};
  return {.name = program->name(), .goal = goal, .program = std::move(program)};
}

// As the peers name and lay them out.
bench::Setting setting_of(const Shape& shape) {
  const Params p = init(shape.hidden);
  const std::int64_t rows = kDevices * shape.batch;
  return {.model = "mlp",
          .devices = kDevices,
          .batch = shape.batch,
          .hidden = shape.hidden,
          .start = {{"f1.weight", p.w1.t()},
                    {"f1.bias", p.b1},
                    {"f2.weight", p.w2.t()},
                    {"f2.bias", p.b2},
                    {"x", random::normal(random::key(1), {rows, 784})},
                    {"y", random::randint(random::key(2), {rows}, 0, 10).to(torch::kLong)}}};
}

void measure(const Shape& shape, bench::Report& report) {
  OurStep<Fused> ours(shape);
  OurStep<AsPrinted> printed(shape);
  SingleLoop single(shape);
  Apart apart(shape);
  Contender one_device{.name = "one device by hand", .goal = shape.single_goal};
  Contender one_device_printed{.name = "the same, update as printed", .goal = std::nullopt};
  Contender one_device_apart{.name = "the same, of two loops that never meet", .goal = std::nullopt};
  const bench::Setting setting = setting_of(shape);
  std::vector<Contender> peers;
  peers.push_back(start(bench::Library::kPytorch, shape.ddp_goal, setting, report));
  peers.push_back(start(bench::Library::kJax, shape.jax_goal, setting, report));

  step_microseconds(ours, 20);
  step_microseconds(printed, 20);
  step_microseconds(single, 20);
  const int calls = bench::calls_to_fill(kRoundTime, 1e3 * step_microseconds(ours, 20));
  bench::measure_rounds([&](int, double exchange) {
    const double our_time = step_microseconds(ours, calls);
    const double single_time = step_microseconds(single, calls);
    one_device.rounds.push_back({.exchange_ns = exchange, .ours = our_time, .peer = single_time});
    one_device_printed.rounds.push_back(
        {.exchange_ns = exchange, .ours = step_microseconds(printed, calls), .peer = single_time});
    one_device_apart.rounds.push_back(
        {.exchange_ns = exchange, .ours = apart.microseconds(calls), .peer = single_time});
    for (Contender& peer : peers) {
      if (!peer.program) continue;
      const double peer_time = 1e-3 * peer.program->step_nanoseconds();
      peer.rounds.push_back({.exchange_ns = exchange, .ours = our_time, .peer = peer_time});
    }
  });

  peers.push_back(std::move(one_device));
  peers.push_back(std::move(one_device_printed));
  peers.push_back(std::move(one_device_apart));
  for (const Contender& peer : peers) {
    if (peer.rounds.empty()) continue;
    bench::Row row = bench::summarise(
        "784-" + std::to_string(shape.hidden) + "-10, " + std::to_string(shape.batch) + " rows a device: " + peer.name,
        "us/step", peer.rounds);
    row.goal = peer.goal;
    report.add(std::move(row));
  }
}

// What a call costs besides its body: an empty body, whose result is the next call's argument, over a hand-off to a second
// thread and back without anything else.
void measure_empty_call(bench::Report& report) {
  constexpr double kLimitMicroseconds = 5.0;
  const auto empty = pmap([](torch::Tensor x) { return x; }, {.axis_name = "devices"});
  Sharded<torch::Tensor> value = replicate(torch::zeros(1));
  const auto call_microseconds = [&](int calls) {
    return 1e-3 * bench::nanoseconds_per_call(calls, [&] { value = empty(std::move(value)); });
  };
  call_microseconds(1000);
  std::vector<bench::Round> rounds;
  bench::measure_rounds([&](int, double exchange) {
    const double there_and_back = 1e-3 * 2 * exchange;
    rounds.push_back(
        {.exchange_ns = exchange, .ours = call_microseconds(20'000) - there_and_back, .peer = kLimitMicroseconds});
  });
  bench::Row row = bench::summarise("empty pmap, result fed back, over a bare hand-off: limit", "us/call", rounds);
  row.goal = 1.0;
  report.add(std::move(row));
}

}  // namespace

int main() {
  // Set here as in the peers, whose devices compute on one thread each.
  at::set_num_threads(1);
  set_cpu_devices(kDevices);
  bench::Report report("step");
  measure_empty_call(report);
  for (const Shape& shape : kShapes) measure(shape, report);
  return report.finish();
}
