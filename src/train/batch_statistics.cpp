#include "batch_statistics.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "brigade/base/error.h"
#include "brigade/train/leaf_sum.h"

namespace brigade::training {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor sum_over(LeafGroup group, std::string_view tag, at::Tensor values) {
  if (group.size == 1) return values;
  return leaf_sum({values}, {.tag = tag, .group = group.size}).front();
}

c10::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? c10::optional<at::Tensor>(tensor) : c10::nullopt;
}

// x * weight / sqrt(variance + eps) + ..., as libtorch's own evaluation does it, in one pass over x.
at::Tensor by_statistics(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                         const at::Tensor& variance, double eps) {
  return std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, /*training=*/false, /*momentum=*/0, eps));
}

struct Settings {
  BatchStatistics statistics;
  double eps;
  LeafGroup group;
};

struct Normalize : public torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const c10::optional<at::Tensor>& weight,
                            const c10::optional<at::Tensor>& bias, const Settings& settings) {
    const at::Tensor mean = settings.statistics.mean.to(x.scalar_type());
    const at::Tensor variance = settings.statistics.variance.to(x.scalar_type());
    const at::Tensor scale = weight.value_or(at::Tensor());
    context->save_for_backward({x, scale, mean, variance});
    context->saved_data["count"] = settings.statistics.count;
    context->saved_data["eps"] = settings.eps;
    context->saved_data["group"] = settings.group.size;
    return by_statistics(x, scale, bias.value_or(at::Tensor()), mean, variance, settings.eps);
  }

  // With h = (x - mean) / sqrt(variance + eps), w the weight and E the mean over the group:
  //   dL/dx = w / sqrt(variance + eps) * (dy - E[dy] - h * E[dy * h]),   dL/dw = sum(dy * h),   dL/db = sum(dy)
  // The last two are the leaf's own, as the trainer adds gradients of leaves.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw InvalidArgument(
          "batch normalization over leaves has no second derivative: differentiate once (create_graph = false), or use "
          "a layer without statistics of the batch, such as torch::nn::GroupNorm");
    }
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    const double eps = context->saved_data["eps"].toDouble();
    const at::Tensor dy = gradients[0].contiguous(x.suggest_memory_format());

    const at::Tensor one = weight.defined() ? weight : at::ones_like(mean);
    const auto sums =
        at::native_batch_norm_backward(dy, x, one, mean, variance, {}, {}, /*train=*/false, eps, {false, true, true});
    const at::Tensor dy_h = std::get<1>(sums), dy_sum = std::get<2>(sums);
    at::Tensor dx;
    if (context->needs_input_grad(0)) {
      const LeafGroup group = {.size = context->saved_data["group"].toInt()};
      const at::Tensor own = at::cat({dy_sum, dy_h}).to(at::kDouble);
      const at::Tensor means =
          sum_over(group, "backward of SyncBatchNorm", own) / context->saved_data["count"].toDouble();
      const std::int64_t channels = mean.size(0);
      const at::Tensor factor = one.to(at::kDouble) / at::sqrt(variance.to(at::kDouble) + eps);
      const auto of_channel = [&](const at::Tensor& values) { return values.to(x.scalar_type()); };
      dx = by_statistics(x, of_channel(-factor * means.narrow(0, channels, channels)),
                         of_channel(-factor * means.narrow(0, 0, channels)), mean, variance, eps);
      std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
      shape[1] = channels;
      dx.addcmul_(dy, of_channel(factor).view(shape));
    }
    return {dx, weight.defined() ? dy_h : at::Tensor(), weight.defined() ? dy_sum : at::Tensor(), at::Tensor()};
  }
};

}  // namespace

BatchStatistics batch_statistics(const at::Tensor& x, LeafGroup group) {
  const at::NoGradGuard no_grad;
  const at::Tensor plain = x.detach();
  const std::int64_t channels = x.size(1);
  auto [mean, variance] = at::batch_norm_update_stats(plain, {}, {}, 0);
  mean = mean.to(at::kDouble);
  variance = variance.to(at::kDouble);
  const double own_count = static_cast<double>(x.numel()) / static_cast<double>(channels);
  if (group.size == 1) return {.mean = mean, .variance = variance, .count = own_count};

  // Sums of the values and of their squares, from float64: what cancels is far below the rounding of x.
  const at::Tensor own =
      at::cat({mean * own_count, (variance + mean.square()) * own_count, at::full({1}, own_count, mean.options())});
  const at::Tensor sums = sum_over(group, "SyncBatchNorm", own);
  const double count = sums[2 * channels].item<double>();
  const at::Tensor all_mean = sums.narrow(0, 0, channels) / count;
  return {.mean = all_mean,
          .variance = (sums.narrow(0, channels, channels) / count - all_mean.square()).clamp_min(0),
          .count = count};
}

at::Tensor normalize(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const BatchStatistics& statistics, double eps, LeafGroup group) {
  return Normalize::apply(x, if_defined(weight), if_defined(bias),
                          Settings{.statistics = statistics, .eps = eps, .group = group});
}

}  // namespace brigade::training
