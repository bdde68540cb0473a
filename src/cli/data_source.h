// The data of `brigade train`: what a path or a name stands for, read, with rows held back for testing and a normalisation.
#pragma once

#include <string>

#include "brigade/data/dataset.h"
#include "models/models.h"
#include "normalization.h"
#include "train_options.h"

namespace brigade::cli {

struct DataSource {
  std::string name = {};       // "Fashion-MNIST", "photos/"
  std::string rows = "rows";   // what people call them: "images"
  data::Splits splits = {};    // y of both are int64
  std::string test_from = {};  // "the test set", "10 % of the rows"
  ByteScale byte_scale = {};   // where x are bytes of images

  DataShape shape() const;
};

// What `options.path` is decides how it is read: data by name; a folder with IDX files, with a folder for each class of
// images, or with texts; a CSV, NPY, safetensors or text file. Throws DataError, saying what was found there and what would
// do, and as the readers do; InvalidArgument for options that this data has no use for.
DataSource read_data(const DataOptions& options, Task task);

}  // namespace brigade::cli
