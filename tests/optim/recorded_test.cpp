// Rules and clipping against steps that PyTorch and optax took.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/block_sums.h"
#include "brigade/optim/clip.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"
#include "support/cases.h"

namespace brigade::optim {
namespace recorded_test {

// The arguments of a recorded rule. Each has to be asked for: one that a test does not know would not be tested.
class Arguments {
 public:
  explicit Arguments(const nlohmann::json& json) : json_(json) {}
  ~Arguments() {
    for (const auto& [name, value] : json_.items()) EXPECT_TRUE(asked_.count(name)) << "the argument " << name;
  }

  template <class T>
  T get(const std::string& name, T otherwise) {
    asked_.insert(name);
    return json_.value(name, otherwise);
  }

 private:
  const nlohmann::json& json_;
  std::set<std::string> asked_;
};

template <class Options>
Options adam_options(Arguments& args, const std::vector<double>& betas) {
  const Options defaults;
  return {.beta1 = betas.at(0),
          .beta2 = betas.at(1),
          .eps = args.get("eps", defaults.eps),
          .weight_decay = args.get("weight_decay", defaults.weight_decay),
          .amsgrad = args.get("amsgrad", defaults.amsgrad)};
}

SgdOptions sgd_options(Arguments& args) {
  return {.momentum = args.get("momentum", 0.0),
          .dampening = args.get("dampening", 0.0),
          .weight_decay = args.get("weight_decay", 0.0),
          .nesterov = args.get("nesterov", false)};
}

Clip clip_of(const nlohmann::json& clip) {
  if (clip.is_null()) return {};
  const double limit = clip.at("limit");
  return clip.at("kind") == "norm" ? clip_norm(limit) : clip_value(limit);
}

Rule torchs_rule(const std::string& name, Arguments& args) {
  const auto betas = [&args] { return args.get("betas", std::vector<double>{0.9, 0.999}); };
  if (name == "SGD") return sgd(sgd_options(args));
  if (name == "Adam") return adam(adam_options<AdamOptions>(args, betas()));
  if (name == "AdamW") return adamw(adam_options<AdamWOptions>(args, betas()));
  if (name == "Adagrad") {
    return adagrad({.lr_decay = args.get("lr_decay", 0.0),
                    .weight_decay = args.get("weight_decay", 0.0),
                    .initial_accumulator_value = args.get("initial_accumulator_value", 0.0),
                    .eps = args.get("eps", 1e-10)});
  }
  if (name == "RMSprop") {
    return rmsprop({.alpha = args.get("alpha", 0.99),
                    .eps = args.get("eps", 1e-8),
                    .weight_decay = args.get("weight_decay", 0.0),
                    .momentum = args.get("momentum", 0.0),
                    .centered = args.get("centered", false)});
  }
  throw std::runtime_error("no rule is known as torch's " + name);
}

// All arguments of optax's rules are recorded but for those that have the defaults of its signatures.
Rule optaxs_rule(const std::string& name, Arguments& args) {
  const auto betas = [&args] { return std::vector{args.get("beta1", 0.9), args.get("beta2", 0.999)}; };
  if (name == "sgd" || name == "momentum" || name == "nesterov" || name == "clip_by_global_norm_then_sgd") {
    return sgd(sgd_options(args));
  }
  if (name == "adam") return adam(adam_options<AdamOptions>(args, betas()));
  if (name == "adamw") {
    AdamWOptions options = adam_options<AdamWOptions>(args, betas());
    options.weight_decay = args.get("weight_decay", 1e-4);
    return adamw(options);
  }
  if (name == "lamb") {
    const std::vector<double> beta = betas();
    return lamb({.beta1 = beta[0],
                 .beta2 = beta[1],
                 .eps = args.get("eps", 1e-6),
                 .weight_decay = args.get("weight_decay", 0.0)});
  }
  if (name == "lars") {
    return lars({.momentum = args.get("momentum", 0.9),
                 .weight_decay = args.get("weight_decay", 0.0),
                 .trust_coefficient = args.get("trust_coefficient", 0.001),
                 .eps = args.get("eps", 0.0),
                 .nesterov = args.get("nesterov", false)});
  }
  throw std::runtime_error("no rule is known as optax's " + name);
}

struct Parameter {
  torch::Tensor value;
  std::vector<torch::Tensor> state;
};

double sum_of_squares_of(const torch::Tensor& gradient) {
  const std::span<const float> values(gradient.data_ptr<float>(), static_cast<std::size_t>(gradient.numel()));
  std::vector<double> sums(block_count(values.size()));
  sums_of_squares(values, sums);
  return tree_sum(sums);
}

void expect_recorded_steps(const nlohmann::json& recorded, const Rule& rule, double learning_rate, const Clip& clip) {
  std::map<std::string, Parameter> parameters;
  for (const auto& [name, start] : recorded.at("p0").items()) {
    Parameter& parameter = parameters[name];
    parameter.value = cases::tensor_of(start);
    for (std::size_t i = 0; i < rule.state_names().size(); ++i) {
      parameter.state.push_back(at::full_like(parameter.value, std::nan("")));
    }
  }
  const nlohmann::json& gradients = recorded.at("grads");
  const nlohmann::json norms = recorded.value("norm_before_clip", nlohmann::json::array());
  for (std::size_t step = 0; step < gradients.size(); ++step) {
    std::vector<double> squares;
    for (const auto& [name, gradient] : gradients[step].items()) {
      squares.push_back(sum_of_squares_of(cases::tensor_of(gradient)));
    }
    const double norm = std::sqrt(tree_sum(squares));
    if (step < norms.size()) {
      EXPECT_NEAR(norm, norms[step].get<double>(), 1e-6 * norm);
    }
    for (auto& [name, parameter] : parameters) {
      rule.update(parameter.value, cases::tensor_of(gradients[step].at(name)), parameter.state,
                  {.learning_rate = learning_rate,
                   .index = static_cast<std::int64_t>(step),
                   .clip_factor = clip.factor(norm),
                   .clip_value = clip.value()});
      const torch::Tensor expected = cases::tensor_of(recorded.at("params_after_step")[step].at(name));
      EXPECT_TRUE(at::allclose(parameter.value, expected, 1e-6, 1e-6))
          << rule.describe() << ", clipped " << clip.describe() << ", " << name << " after step " << step << ": "
          << (parameter.value - expected).abs().max();
    }
  }
}

TEST(RecordedRules, TakeTorchsSteps) {
  const nlohmann::json content = cases::load("torch/optim.json");
  std::set<std::string> rules;
  for (const nlohmann::json& recorded : content.at("cases")) {
    Arguments args(recorded.at("args"));
    const Rule rule = torchs_rule(recorded.at("rule"), args);
    rules.insert(recorded.at("rule"));
    expect_recorded_steps(recorded, rule, args.get("lr", 0.0), clip_of(recorded.at("clip")));
  }
  EXPECT_EQ(rules, (std::set<std::string>{"SGD", "Adam", "AdamW", "Adagrad", "RMSprop"}));
}

TEST(RecordedRules, TakeOptaxsSteps) {
  const nlohmann::json content = cases::load("jax/optim.json");
  std::set<std::string> rules;
  for (const nlohmann::json& recorded : content.at("cases")) {
    if (!recorded.contains("rule")) continue;  // a schedule
    Arguments args(recorded.at("args"));
    const Rule rule = optaxs_rule(recorded.at("rule"), args);
    rules.insert(recorded.at("rule"));
    const double max_norm = args.get("max_norm", 0.0);
    expect_recorded_steps(recorded, rule, args.get("lr", 0.0), max_norm > 0 ? clip_norm(max_norm) : Clip());
  }
  EXPECT_EQ(rules, (std::set<std::string>{"sgd", "momentum", "nesterov", "adam", "adamw", "lamb", "lars",
                                          "clip_by_global_norm_then_sgd"}));
}

}  // namespace recorded_test
}  // namespace brigade::optim
