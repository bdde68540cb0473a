#include "models.h"

#include "../choice.h"
#include "cnn.h"
#include "mlp.h"
#include "resnet.h"
#include "transformer.h"

namespace brigade::cli {

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {.name = "mlp", .shape = "a perceptron with a hidden layer of 128", .make = make_mlp, .epochs = 5},
      {.name = "cnn",
       .shape = "two 3x3 convolutions (32, 64) and a hidden layer of 128",
       .drops = true,
       .make = make_cnn,
       .epochs = 3},
      {.name = "resnet18",
       .shape = "ResNet-18 for small images",
       .normalises = true,
       .make = make_resnet18,
       .epochs = 3,
       .weight_decay = 5e-4},
      {.name = "transformer",
       .shape = "a language model over bytes: 4 layers, width 128, 4 heads",
       .task = Task::kNextByte,
       .drops = true,
       .make = make_transformer,
       .rows = 16,
       .optimizer = "adamw",
       .clip_norm = 1},
  };
  return all;
}

const Model& model_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Model& model : models()) names.push_back(model.name);
  return models()[chosen("model", name, names)];
}

}  // namespace brigade::cli
