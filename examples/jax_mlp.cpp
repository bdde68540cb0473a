// Data-parallel training of a two-layer perceptron: JAX's pmap program, line for line.
//
//   jax_mlp --devices 8
//
// prints the same losses as the program in JAX does on eight devices.
#include <brigade/brigade.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace brigade;

// An aggregate of tensors is a tree; nothing to register.
struct Params {
  torch::Tensor w1, b1, w2, b2;
};

Params init_params(random::Key key) {
  auto [k1, k2] = random::split<2>(key);
  return {random::normal(k1, {784, 128}) * 0.01, torch::zeros(128), random::normal(k2, {128, 10}) * 0.01,
          torch::zeros(10)};
}

torch::Tensor forward(const Params& p, const torch::Tensor& x) {
  auto h = torch::relu(torch::matmul(x, p.w1) + p.b1);
  return torch::matmul(h, p.w2) + p.b2;
}

torch::Tensor loss_fn(const Params& p, const torch::Tensor& x, const torch::Tensor& y) {
  auto log_probs = torch::log_softmax(forward(p, x), 1);
  return -(log_probs * y).sum(1).mean();
}

// What the command line can change; the defaults are the program's own numbers.
struct Settings {
  int devices = 0;  // 0: one per core
  std::int64_t seed = 0;
  std::int64_t per_device_batch = 32;
  double learning_rate = 0.01;
  std::string save;
};

void save(const std::string& file, const std::vector<float>& losses, const Params& params) {
  nlohmann::json json{{"losses", losses}};
  tree::for_each(
      [&](const tree::Path& path, const torch::Tensor& t) {
        const auto flat = t.contiguous();
        json["final"][path.text()] = std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
      },
      params);
  std::ofstream(file) << json << '\n';
}

void train(const Settings& settings) {
  const double lr = settings.learning_rate;
  auto train_step = pmap(
      [lr](Params p, torch::Tensor x, torch::Tensor y) {
        Params grads = grad(loss_fn)(p, x, y);
        grads = lax::pmean(grads, "devices");
        return tree::map([lr](auto w, auto g) { return w - lr * g; }, p, grads);
      },
      {.axis_name = "devices"});

  auto key = random::key(settings.seed);
  const auto n_devices = device_count();
  const auto per_device_batch = settings.per_device_batch;
  const auto global_batch = n_devices * per_device_batch;
  std::printf("设备数: %ld, 全局批大小: %ld\n", n_devices, global_batch);

  auto x = random::normal(key, {global_batch, 784}).reshape({n_devices, per_device_batch, 784});
  auto y = torch::one_hot(random::randint(key, {global_batch}, 0, 10).to(torch::kLong), 10)
               .to(torch::kFloat)
               .reshape({n_devices, per_device_batch, 10});

  Sharded<Params> params = replicate(init_params(key));  // equal replicas: the start that all later steps keep
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    params = train_step(std::move(params), x, y);
    losses.push_back(loss_fn(params[0], x[0], y[0]).item<float>());
    std::printf("step %d: loss = %.4f\n", step, losses.back());
  }
  if (!settings.save.empty()) save(settings.save, losses, params[0]);
}

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Trains a two-layer perceptron on made-up data, as the JAX program does.");
  app.add_option("--devices", settings.devices, "CPU devices; default: one per core")->check(CLI::Range(1, 1024));
  app.add_option("--seed", settings.seed, "seed of parameters and data")->capture_default_str();
  app.add_option("--per-device-batch", settings.per_device_batch, "rows per device")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--learning-rate", settings.learning_rate, "learning rate")->capture_default_str();
  app.add_option("--save", settings.save, "write losses and final parameters to this JSON file");
  CLI11_PARSE(app, argc, argv);
  try {
    if (settings.devices > 0) set_cpu_devices(settings.devices);
    train(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jax_mlp: %s\n", error.what());
    return 1;
  }
}
