// The networks that `brigade train` knows, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network.h"

namespace brigade::cli {

// What a network answers, and so what data it takes.
enum class Task {
  kClass,     // the class of a row
  kNextByte,  // after each byte of a row the one that follows
};

struct Model {
  std::string name = {};
  std::string shape = {};  // for people: "784-128-10"
  Task task = Task::kClass;
  bool normalises = false;  // over rows, by norm_layer()
  bool drops = false;       // has layers of dropout
  std::shared_ptr<Network> (*make)(const DataShape& shape, const NetworkOptions& options) = nullptr;

  // When nobody says otherwise.
  std::int64_t epochs = 1;
  std::int64_t rows = 64;  // that a device takes at once
  std::string optimizer = "sgd";
  double weight_decay = 0;
  double clip_norm = 0;  // 0: off
};

const std::vector<Model>& models();

// Throws InvalidArgument, suggesting the nearest, when there is no such model.
const Model& model_named(const std::string& name);

}  // namespace brigade::cli
