// What the command line of `brigade train` says, as it was said: what is empty follows from the model, the optimizer or the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace brigade::cli {

struct DataOptions {
  std::string path = {};   // "fashion-mnist", "fortunes", a file or a folder; empty: what the model is shown with
  std::string label = {};  // a column of a CSV file, the NPY file of the labels, a tensor of a safetensors file
  std::optional<double> test_fraction = {};  // held back where there is no test set
  std::int64_t image_size = 0;               // of folders of images: each is made so large; 0: as they are
  std::int64_t sequence = 64;                // bytes of a row of text
};

// Rows of a step; see DataParallelOptions.
struct BatchOptions {
  std::optional<std::int64_t> per_device = {};
  std::optional<std::int64_t> global = {};
  std::optional<std::int64_t> logical_shards = {};
  std::optional<std::int64_t> accumulate = {};
};

struct RateOptions {
  std::optional<double> rate = {};  // --lr: right for steps of base_batch rows
  std::int64_t base_batch = 64;
  std::string scaling = {};  // none, linear, sqrt
  std::string schedule = "cosine";
  std::optional<std::int64_t> warmup = {};
  std::optional<double> gamma = {};        // of step and exponential
  std::optional<std::int64_t> every = {};  // of step and exponential
  std::optional<double> power = {};        // of polynomial
  std::optional<double> to = {};           // of cosine, linear, polynomial
};

struct OptimizerOptions {
  std::string name = {};
  std::optional<double> momentum = {};
  std::optional<double> weight_decay = {};
  std::optional<double> clip = {};        // of the norm over all gradients; 0: off
  std::optional<double> clip_value = {};  // of every element
};

struct ArithmeticOptions {
  std::string precision = "float32";
  std::string loss_scale = {};  // a number, or "dynamic"
  std::string non_finite = "stop";
};

struct DeviceOptions {
  std::optional<int> count = {};
  double bucket_mb = 25;
  bool own_parameters = false;  // --no-share-parameters
};

struct CheckpointOptions {
  std::string folder = {};                      // --checkpoint-dir; empty: nothing is saved
  std::optional<std::int64_t> save_every = {};  // steps; default: each epoch
  std::optional<std::int64_t> keep = {};        // the newest so many, besides the best
  bool resume = false;
};

struct SafetyOptions {
  std::int64_t audit = 1;  // steps between audits; 0: never
  std::string on_drift = "stop";
};

struct CompressionOptions {
  std::string codec = "none";
  std::int64_t start = 0;  // steps before it are not compressed
};

struct TrainOptions {
  std::string model = "mlp";
  bool sync_bn = false;
  std::optional<double> dropout = {};
  std::optional<std::int64_t> epochs = {};
  std::optional<std::int64_t> max_steps = {};  // at most; the learning rate ends there too
  std::int64_t seed = 0;                       // below 2^32, all that a key takes
  std::int64_t eval_every = 0;                 // steps; 0: at the end only
  std::int64_t noise_scale_every = 0;          // steps; 0: never

  DataOptions data = {};
  DeviceOptions devices = {};
  BatchOptions batch = {};
  RateOptions rate = {};
  OptimizerOptions optimizer = {};
  ArithmeticOptions arithmetic = {};
  CheckpointOptions checkpoint = {};
  SafetyOptions safety = {};
  CompressionOptions compression = {};

  bool print_schedule = false;
  bool json = false;
  bool quiet = false;
};

}  // namespace brigade::cli
