// Reads and writes safetensors files: named tensors and a few strings, the format of model hubs. Nothing in such a file
// is ever run.
//
//   data::write_safetensors("model.safetensors", {{"w", w}, {"b", b}}, {{"step", "1200"}});
//   const data::SafeTensors model = data::read_safetensors("model.safetensors");
//   torch::Tensor w = model.at("w");
//
// https://huggingface.co/docs/safetensors/index
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "brigade/data/dataset.h"
#include "brigade/data/files.h"

namespace brigade::data {

using TensorMap = std::map<std::string, torch::Tensor>;
using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  TensorMap tensors = {};  // on the CPU, contiguous, each aligned to 64 bytes
  Metadata metadata = {};

  // The tensor `name`. Throws DataError, with the nearest name there is, when there is none.
  const torch::Tensor& at(const std::string& name) const;
};

struct SafeTensorsOptions {
  std::uint64_t max_bytes = std::uint64_t{16} << 30;  // of data in one file; more is refused
  std::uint64_t max_header_bytes = 100'000'000;       // of names, shapes and metadata
  SymbolicLinks links = SymbolicLinks::kFollow;
  ByteSink on_bytes = {};  // is given the file's bytes as they are read, for a digest
};

// Reads a whole file of bool, uint8, int8 to int64, float16, bfloat16, float32 and float64 tensors. Throws DataError,
// with the file's name, what was found and what to do, when it cannot be read, holds tensors of another dtype, exceeds a
// limit, or is not sound: its data must be tiled by its tensors without a hole, an overlap or a byte behind them, no
// name may occur twice, be empty or hold control characters, no field may be unknown, and bools must be 0 or 1. Memory
// follows the file's size and not what its header announces: tensors are made when the whole header has proved to fit.
// Names are never used as paths.
SafeTensors read_safetensors(const std::filesystem::path& file, const SafeTensorsOptions& options = {});

struct SafeTensorsDatasetOptions {
  std::string x = "images";
  std::string y = "labels";
  std::int64_t classes = 0;                           // labels must lie below it; 0 takes the largest label plus one
  std::uint64_t max_bytes = std::uint64_t{16} << 30;  // of data in the file; more is refused
};

// The tensors named so of one file: x [rows, ...] with its labels y [rows] or [rows, ...], whole numbers of any dtype,
// which become int64. Throws DataError as read_safetensors does, when there is no such tensor, and when the two do not
// belong together or a label is not in [0, classes).
Dataset safetensors(const std::filesystem::path& file, const SafeTensorsDatasetOptions& options = {});

// Writes a file that every safetensors reader takes, of tensors of the dtypes above, on any device and of any strides;
// those that share memory are written in full. The same contents give the same bytes, and those of the reference
// implementation: tensors by size of their elements, dtype and name, metadata by key. The file is written beside `file`,
// flushed to the disk and then takes its name, with permissions for its owner alone; when anything fails `file` is what
// it was. Throws InvalidArgument for tensors, names or metadata that the format has no room for, DataError when the file
// cannot be written.
void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors, const Metadata& metadata = {});

// The same bytes to `sink`: the header first, then tensor after tensor. InvalidArgument comes before the first byte, but
// for a bool that is neither 0 nor 1.
void write_safetensors(const ByteSink& sink, const TensorMap& tensors, const Metadata& metadata = {});

}  // namespace brigade::data
