#include "brigade/data/image_folder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/errors.h"
#include "data/image_decoder.h"
#include "data/read_all.h"

namespace brigade::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;  // of one image, packed

struct Entry {
  fs::path path;
  std::int64_t label;
};

void check(const ImageFolderOptions& options) {
  if (options.height < 0 || options.width < 0 || (options.height == 0) != (options.width == 0)) {
    throw InvalidArgument(
        fmt::format("image_folder: images cannot be resized to {} x {}: give both height and width, or 0 "
                    "for both to leave them as they are.",
                    options.height, options.width));
  }
  const std::set<std::string> names(options.class_names.begin(), options.class_names.end());
  if (names.size() != options.class_names.size()) {
    throw InvalidArgument("image_folder: a class name is given twice.");
  }
}

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// What lies in `folder` and is not hidden, sorted by the bytes of the names.
std::vector<fs::path> list(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!hidden(it->path())) paths.push_back(it->path());
  }
  if (error) refuse(folder.string(), fmt::format("cannot be listed: {}. Give a folder.", error.message()));
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return paths;
}

// The names of the folders there are, all of them in `given` unless that is empty.
std::vector<std::string> find_classes(const fs::path& folder, const std::vector<std::string>& given) {
  std::vector<std::string> found;
  for (const fs::path& path : list(folder)) {
    std::error_code ignored;  // what cannot be examined is no folder
    if (fs::is_directory(path, ignored)) found.push_back(path.filename().string());
  }
  if (found.empty()) {
    refuse(folder.string(), "holds no folder, where each class has one of its own with the images in it.");
  }
  for (const std::string& name : found) {
    if (given.empty() || std::find(given.begin(), given.end(), name) != given.end()) continue;
    refuse(folder.string(),
           fmt::format("has the folder {}, which is not among the {} class names given.", shown(name), given.size()));
  }
  return found;
}

// Those of `classes` that are among the folders `found`.
std::vector<Entry> find_images(const fs::path& folder, const std::vector<std::string>& found,
                               const std::vector<std::string>& classes) {
  std::vector<Entry> entries;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    if (std::find(found.begin(), found.end(), classes[label]) == found.end()) continue;
    const fs::path of_class = folder / classes[label];
    const std::vector<fs::path> images = list(of_class);
    if (images.empty()) refuse(of_class.string(), "holds no image. Put some into it, or remove it.");
    for (const fs::path& path : images) entries.push_back({.path = path, .label = static_cast<std::int64_t>(label)});
  }
  return entries;
}

// [channels, height, width], as the file has it.
torch::Tensor load(const fs::path& path, const ImageFolderOptions& options) {
  std::vector<std::byte> bytes;
  FileSource source(path);
  read_all(source, kMaxFileBytes, bytes);
  Image image = decode_image(path.string(), bytes, {.color = options.color, .max_pixels = options.max_pixels});
  return at::from_blob(image.pixels.data(), {image.height, image.width, image.channels}, at::kByte)
      .permute({2, 0, 1})
      .clone(at::MemoryFormat::Contiguous);  // memory of its own, also where one channel needs no other order
}

torch::Tensor resized(const torch::Tensor& image, std::int64_t height, std::int64_t width) {
  if (height == 0 || (image.size(1) == height && image.size(2) == width)) return image;
  const torch::Tensor floats = image.to(at::kFloat).unsqueeze(0);
  return at::_upsample_bilinear2d_aa(floats, {height, width}, /*align_corners=*/false)
      .squeeze(0)
      .round_()
      .clamp_(0, 255)
      .to(at::kByte);
}

// Room for `count` images like `first`.
torch::Tensor allocate(const fs::path& folder, std::int64_t count, const torch::Tensor& first,
                       std::uint64_t max_bytes) {
  const auto each = static_cast<std::uint64_t>(first.numel());
  if (each > max_bytes / static_cast<std::uint64_t>(count)) {
    refuse(folder.string(),
           fmt::format("holds {} images of {} x {}, which take more than the limit of {} bytes. Resize them "
                       "with .height and .width, or raise max_bytes.",
                       count, first.size(1), first.size(2), max_bytes));
  }
  return at::empty({count, first.size(0), first.size(1), first.size(2)}, at::kByte);
}

}  // namespace

Dataset image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  check(options);
  const std::vector<std::string> found = find_classes(folder, options.class_names);
  Dataset dataset;
  dataset.class_names = options.class_names.empty() ? found : options.class_names;
  dataset.classes = static_cast<std::int64_t>(dataset.class_names.size());
  const std::vector<Entry> entries = find_images(folder, found, dataset.class_names);
  const auto count = static_cast<std::int64_t>(entries.size());
  dataset.y = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const Entry& entry = entries[static_cast<std::size_t>(i)];
    const torch::Tensor image = resized(load(entry.path, options), options.height, options.width);
    if (i == 0) dataset.x = allocate(folder, count, image, options.max_bytes);
    if (image.sizes() != dataset.x.sizes().slice(1)) {
      refuse(
          entry.path.string(),
          fmt::format("is {} x {}, where the images before it are {} x {}. Images must have one size: resize them with "
                      ".height and .width.",
                      image.size(1), image.size(2), dataset.x.size(2), dataset.x.size(3)));
    }
    dataset.x[i].copy_(image);
    dataset.y.data_ptr<std::int64_t>()[i] = entry.label;
  }
  return dataset;
}

}  // namespace brigade::data
