// The networks that `brigade train` knows, as functions of their parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "brigade/random/initializers.h"
#include "brigade/random/key.h"

namespace brigade::cli {

using Parameters = std::map<std::string, torch::Tensor>;

// A weight, drawn by he_normal over `axes`, and a bias of zeros.
struct Layer {
  std::string name;
  std::vector<std::int64_t> weight;  // its shape
  std::int64_t outputs;              // elements of the bias
  random::FanAxes axes;
};

struct Model {
  std::string name;
  std::string shape;  // for people: "784-128-10"
  int epochs;         // that it is trained for when nobody says otherwise
  std::vector<Layer> layers;
  torch::Tensor (*forward)(const Parameters& parameters, const torch::Tensor& images);  // (rows, 28, 28) to (rows, 10)
};

const std::vector<Model>& models();

// Throws InvalidArgument, suggesting the nearest, when there is no such model.
const Model& model_named(const std::string& name);

std::int64_t count_parameters(const Model& model);

// Named after the layers: "hidden.weight", "hidden.bias".
Parameters init_parameters(const Model& model, random::Key key);

}  // namespace brigade::cli
