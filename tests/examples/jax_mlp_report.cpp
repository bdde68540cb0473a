// jax_mlp_report DEVICES SEED PER_DEVICE_BATCH LEARNING_RATE
//
// Trains as examples/jax_mlp.cpp does, and prints losses and final parameters in full as a last line of JSON.
#define JAX_MLP_WITHOUT_MAIN
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "examples/jax_mlp.cpp"

int main(int, char** argv) {
  set_cpu_devices(std::atoi(argv[1]));
  const Trained trained = train(random::key(std::atoll(argv[2])), std::atoll(argv[3]), std::atof(argv[4]));
  nlohmann::json report{{"losses", trained.losses}};
  tree::for_each(
      [&](const tree::Path& path, const torch::Tensor& t) {
        const auto flat = t.contiguous();
        report["final"][path.text()] =
            std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
      },
      trained.params);
  std::fflush(stdout);
  std::cout << report << '\n';
}
