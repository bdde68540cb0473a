// Data-parallel training of a two-layer perceptron: JAX's pmap program, line for line.
//
//   jax_mlp --devices 8
//
// prints the same losses as the program in JAX does on eight devices.
#include <brigade/brigade.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

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

struct Trained {
  std::vector<float> losses;  // after each step
  Params params;
};

Trained train(random::Key key, std::int64_t per_device_batch, double learning_rate) {
  auto train_step = pmap(
      [learning_rate](Params p, torch::Tensor x, torch::Tensor y) {
        Params grads = grad(loss_fn)(p, x, y);
        grads = lax::pmean(grads, "devices");
        return tree::map([learning_rate](auto w, auto g) { return w - learning_rate * g; }, p, grads);
      },
      {.axis_name = "devices"});

  const auto n_devices = device_count();
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
  return {losses, params[0]};
}

#ifndef JAX_MLP_WITHOUT_MAIN  // a test runs train() with other numbers

int device_count_from(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size() && count >= 1 && count <= 1024) return count;
  throw InvalidArgument("--devices takes a whole number from 1 to 1024, not \"" + std::string(text) + "\"");
}

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string_view(argv[1]) == "--devices") {
      set_cpu_devices(device_count_from(argv[2]));
    } else if (argc != 1) {
      throw InvalidArgument("usage: jax_mlp [--devices N]; without it, one device per core");
    }
    train(random::key(0), 32, 0.01);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jax_mlp: %s\n", error.what());
    return 1;
  }
}

#endif
