// One function for each form in which training data may lie on the disk. All throw DataError as the readers do.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "brigade/data/dataset.h"
#include "train_options.h"

namespace brigade::cli {

// A training set, and the test set that belongs to it where there is one.
struct DataFiles {
  data::Dataset train = {};
  std::optional<data::Dataset> test = {};
};

// Whether the folder has IDX files by MNIST's names, of images to train with.
bool holds_idx(const std::filesystem::path& folder);

// train-images-idx3-ubyte, train-labels-idx1-ubyte, and the two of t10k where they are; each plain or with .gz. Images of any
// size.
DataFiles read_idx_folder(const std::filesystem::path& folder);

// A folder for each class of images; or such folders in train/, and in test/ or val/.
DataFiles read_image_folder(const std::filesystem::path& folder, const DataOptions& options);

DataFiles read_csv(const std::filesystem::path& file, const DataOptions& options);
DataFiles read_npy_pair(const std::filesystem::path& file, const DataOptions& options);
DataFiles read_safetensors_pair(const std::filesystem::path& file, const DataOptions& options);

// Rows of options.sequence bytes. The end of each file, `test_fraction` of it, is the test set, so that both have all kinds
// of text.
DataFiles read_texts(const std::vector<std::filesystem::path>& files, const DataOptions& options, double test_fraction);

// Regular files of `folder`, sorted, with names that end in `ending`; of names without a dot where it is empty.
std::vector<std::filesystem::path> files_ending(const std::filesystem::path& folder, const std::string& ending);

// Folders in `folder`, sorted, but those whose names begin with a dot.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

}  // namespace brigade::cli
