// Fashion-MNIST: 60,000 images for training and 10,000 for testing, 28 x 28 grey levels, ten kinds of clothes.
//
// H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms",
// 2017, arXiv:1708.07747. MIT licence.
#pragma once

#include <filesystem>

#include "brigade/data/dataset.h"

namespace brigade::data {

// Mean and standard deviation of the training images scaled to [0, 1], measured over all of their pixels; for
// normalize().
inline constexpr double kFashionMnistMean = 0.2860;
inline constexpr double kFashionMnistStd = 0.3530;

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte and the two files of t10k, each plain or with .gz, from
// `folder`, by default the one of Debian's package dataset-fashion-mnist. MNIST's own files have these names and are
// read as well. Throws DataError when a file is missing, when its images are not
// 28 x 28, or as idx() does.
Splits fashion_mnist(const std::filesystem::path& folder = {});

}  // namespace brigade::data
