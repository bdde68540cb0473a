#include "training/setting.h"

#include <ATen/ATen.h>

#include "brigade/random/distributions.h"
#include "training/models.h"

namespace brigade::bench {

Setting make_setting(std::string model, std::int64_t devices, std::int64_t batch, std::int64_t hidden) {
  Setting setting = {.model = std::move(model), .devices = devices, .batch = batch, .hidden = hidden};
  at::manual_seed(0);
  with_network(setting.model, hidden, [&](auto make) {
    for (const auto& item : make()->named_parameters()) setting.start[item.key()] = item.value().detach();
  });
  const std::int64_t rows = devices * batch;
  const auto whole_numbers = [](std::int64_t seed, std::vector<std::int64_t> shape, std::int32_t below) {
    return random::randint(random::key(seed), shape, 0, below).to(at::kLong);
  };
  at::Tensor& x = setting.start["x"];
  at::Tensor& y = setting.start["y"];
  if (setting.model == "transformer") {
    x = whole_numbers(1, {rows, 64}, 256);
    y = whole_numbers(2, {rows, 64}, 256);
  } else {
    x = random::normal(random::key(1), {rows, 784});
    if (setting.model == "cnn") x = x.view({rows, 1, 28, 28});
    y = whole_numbers(2, {rows}, 10);
  }
  return setting;
}

}  // namespace brigade::bench
