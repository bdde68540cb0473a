#include "evaluation.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <memory>
#include <utility>

#include "precision.h"

namespace brigade::training {
namespace {

// Each module has the mode again afterwards that it had: a program may keep a layer as it is by eval().
class EvaluationMode {
 public:
  explicit EvaluationMode(const std::vector<Replica>& replicas) {
    for (const Replica& replica : replicas) {
      if (!replica.module) continue;
      for (const auto& module : replica.module->modules()) modes_.emplace_back(module, module->is_training());
      replica.module->eval();
    }
  }
  ~EvaluationMode() {
    // A module stands before its children, whose modes train() sets too.
    for (const auto& [module, training] : modes_) module->train(training);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
};

}  // namespace

void begin_training(const std::vector<Replica>& replicas) {
  for (const Replica& replica : replicas) {
    if (replica.module && !replica.module->is_training()) replica.module->train();
  }
}

std::optional<OneThreadInOperators> operators_of_one_thread(const DataParallelOptions& options) {
  return options.logical_shards > 0 ? std::make_optional<OneThreadInOperators>() : std::nullopt;
}

std::vector<at::Tensor> evaluate(Axis& axis, const LeafPlan& plan, const std::vector<Replica>& replicas,
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
