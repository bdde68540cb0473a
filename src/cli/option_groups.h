// The options of `brigade train`, group by group.
#pragma once

#include <CLI/CLI.hpp>

#include "train_options.h"

namespace brigade::cli {

void add_model_and_data_options(CLI::App& command, TrainOptions& options);
void add_batch_options(CLI::App& command, BatchOptions& options);
void add_optimizer_options(CLI::App& command, OptimizerOptions& options);
void add_rate_options(CLI::App& command, TrainOptions& options);
void add_arithmetic_options(CLI::App& command, ArithmeticOptions& options);
void add_device_options(CLI::App& command, DeviceOptions& options);
void add_checkpoint_options(CLI::App& command, CheckpointOptions& options);
void add_safety_options(CLI::App& command, SafetyOptions& options);
void add_compression_options(CLI::App& command, CompressionOptions& options);
void add_run_options(CLI::App& command, TrainOptions& options);
void add_output_options(CLI::App& command, TrainOptions& options);

}  // namespace brigade::cli
