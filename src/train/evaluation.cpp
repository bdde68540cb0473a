#include "evaluation.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "precision.h"

namespace brigade::training {
namespace {

class EvaluationMode {
 public:
  explicit EvaluationMode(std::vector<Replica>& replicas) : replicas_(replicas) { set_training(replicas_, false); }
  ~EvaluationMode() { set_training(replicas_, true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<Replica>& replicas_;
};

}  // namespace

void set_training(std::vector<Replica>& replicas, bool training) {
  for (Replica& replica : replicas) {
    if (replica.module) replica.module->train(training);
  }
}

std::optional<OneThreadInOperators> operators_of_one_thread(const DataParallelOptions& options) {
  return options.logical_shards > 0 ? std::make_optional<OneThreadInOperators>() : std::nullopt;
}

std::vector<at::Tensor> evaluate(Axis& axis, const LeafPlan& plan, std::vector<Replica>& replicas,
                                 const DataParallelOptions& options, Trainer::Measure measure) {
  std::vector<std::vector<at::Tensor>> sums(static_cast<std::size_t>(plan.leaves()));
  {
    const EvaluationMode mode(replicas);
    axis.run([&](int position) {
      const at::NoGradGuard no_grad;
      const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread(options);
      const PrecisionScope precision(options.precision);
      const LeafRange leaves = plan.leaves_of(position);
      for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
        sums[static_cast<std::size_t>(leaf)] = measure(position, leaf, plan.rows_of(leaf));
    });
  }
  std::vector<at::Tensor> total = std::move(sums.front());
  for (std::size_t leaf = 1; leaf < sums.size(); ++leaf) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] = total[i] + sums[leaf][i];
  }
  return total;
}

}  // namespace brigade::training
