// Reads a folder of images in which each class has a folder of its own:
//
//   photos/cat/1.jpg  photos/cat/2.png  photos/dog/a.jpg  ...
//
//   data::Dataset train = data::image_folder("photos", {.height = 64, .width = 64});
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "brigade/data/color.h"
#include "brigade/data/dataset.h"

namespace brigade::data {

struct ImageFolderOptions {
  Color color = Color::kRgb;
  // What every image is resized to, by averaging over what falls into a pixel (bilinear with anti-aliasing); the shape of
  // the image is not kept. 0 and 0: none is, and all must have one size.
  std::int64_t height = 0;
  std::int64_t width = 0;
  // The classes and their order, such as the class_names of the training set when the test set is read. Empty: every
  // folder is a class, sorted by the bytes of their names.
  std::vector<std::string> class_names = {};
  std::uint64_t max_bytes = std::uint64_t{4} << 30;   // of all pixels together, as they are kept
  std::uint64_t max_pixels = std::uint64_t{1} << 26;  // of one image, as it is stored: 8192 x 8192
};

// x is uint8 [images, 3 or 1, height, width]; y is int64 [images], the folder of each. Images are ordered by class, then by
// the bytes of their names. Every file in a class's folder must be a PNG or JPEG file, whatever its name, but those whose
// names begin with a dot are passed over, and so is what lies beside the folders of the classes. Grey images are grey in all
// channels, transparent ones lie on black, 16 bits become 8, and what a photo says of its orientation is not heeded.
//
// Throws DataError, naming the file, for one that is something else, damaged or too large, and for the first one whose size
// differs from that of those before; naming the folder when it cannot be read, holds no class, a class without an image, or
// one that is not among class_names; and, saying so, when Brigade was built without the libraries that decode. Throws
// InvalidArgument for options that do not go together. Memory is that of x, of one image and its file.
Dataset image_folder(const std::filesystem::path& folder, const ImageFolderOptions& options = {});

}  // namespace brigade::data
