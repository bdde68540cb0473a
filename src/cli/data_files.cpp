#include "data_files.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "brigade/base/error.h"
#include "brigade/data/csv.h"
#include "brigade/data/idx.h"
#include "brigade/data/image_folder.h"
#include "brigade/data/npy.h"
#include "brigade/data/safetensors.h"
#include "brigade/data/text.h"

namespace brigade::cli {
namespace {

namespace fs = std::filesystem;

// "train-images-idx3-ubyte" or the same with .gz, of any number of dimensions; nothing if there is none.
std::optional<fs::path> idx_file(const fs::path& folder, const std::string& name) {
  for (const char* const dimensions : {"1", "2", "3", "4"}) {
    for (const char* const ending : {".gz", ""}) {
      const fs::path file = folder / fmt::format("{}-idx{}-ubyte{}", name, dimensions, ending);
      std::error_code ignored;  // what cannot be examined is refused when it is opened
      if (fs::exists(file, ignored)) return file;
    }
  }
  return {};
}

fs::path required_idx_file(const fs::path& folder, const std::string& name) {
  if (const auto file = idx_file(folder, name)) return *file;
  throw DataError(
      fmt::format("{}: the images' labels are missing: there is neither {}-idx1-ubyte.gz nor the same without "
                  ".gz",
                  folder.string(), name));
}

void require_no_label(const DataOptions& options, const char* kind, const char* labels) {
  if (options.label.empty()) return;
  throw InvalidArgument(
      fmt::format("--label {} has no meaning for {}: their labels are {}", options.label, kind, labels));
}

bool is_number(const std::string& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string labels_of(const data::SafeTensors& file, const fs::path& path, const DataOptions& options) {
  if (!options.label.empty()) return options.label;
  for (const char* const name : {"labels", "y"}) {
    if (file.tensors.contains(name)) return name;
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  throw DataError(fmt::format("{}: holds {}: name the labels by --label", path.string(), quoted_list(names)));
}

// "images" or "x", or the one tensor that is not the labels.
std::string rows_of(const data::SafeTensors& file, const fs::path& path, const std::string& labels) {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == labels) continue;
    if (name == "images" || name == "x") return name;
    others.push_back(name);
  }
  if (others.size() == 1) return others.front();
  throw DataError(fmt::format("{}: beside the labels it holds {}: call the rows \"images\" or \"x\"", path.string(),
                              others.empty() ? "nothing" : quoted_list(others)));
}

}  // namespace

bool holds_idx(const fs::path& folder) { return idx_file(folder, "train-images").has_value(); }

DataFiles read_idx_folder(const fs::path& folder) {
  const fs::path train_images = *idx_file(folder, "train-images");
  DataFiles files;
  files.train = data::idx(train_images, required_idx_file(folder, "train-labels"));
  const auto test_images = idx_file(folder, "t10k-images");
  if (!test_images) return files;
  files.test = data::idx(*test_images, required_idx_file(folder, "t10k-labels"), {.classes = files.train.classes});
  const auto sizes = files.train.x.sizes().slice(1);
  const auto test_sizes = files.test->x.sizes().slice(1);
  if (!sizes.equals(test_sizes)) {
    throw DataError(fmt::format("{}: holds images of {}, where those of {} are {}. Give the two of one set",
                                test_images->string(), fmt::join(test_sizes, " x "), train_images.string(),
                                fmt::join(sizes, " x ")));
  }
  return files;
}

DataFiles read_image_folder(const fs::path& folder, const DataOptions& options) {
  require_no_label(options, "folders of images", "the folders' names");
  data::ImageFolderOptions reading{.height = options.image_size, .width = options.image_size};
  const fs::path train = folder / "train";
  if (!fs::is_directory(train)) return {.train = data::image_folder(folder, reading)};
  DataFiles files = {.train = data::image_folder(train, reading)};
  for (const char* const name : {"test", "val"}) {
    if (!fs::is_directory(folder / name)) continue;
    reading.class_names = files.train.class_names;
    files.test = data::image_folder(folder / name, reading);
    break;
  }
  return files;
}

DataFiles read_csv(const fs::path& file, const DataOptions& options) {
  data::CsvOptions reading;
  if (std::int64_t number = 0; is_number(options.label, number)) {
    reading.label = number;
  } else if (!options.label.empty()) {
    reading.label = options.label;
  }
  if (file.string().find(".tsv") != std::string::npos) reading.separator = '\t';
  return {.train = data::csv(file, reading)};
}

DataFiles read_npy_pair(const fs::path& file, const DataOptions& options) {
  if (options.label.empty()) {
    throw InvalidArgument(
        fmt::format("{} holds rows without labels: name the NPY file that has them by --label", file.string()));
  }
  return {.train = data::npy(file, options.label)};
}

DataFiles read_safetensors_pair(const fs::path& file, const DataOptions& options) {
  const data::SafeTensors contents = data::read_safetensors(file);
  const std::string labels = labels_of(contents, file, options);
  return {.train = data::safetensors(file, {.x = rows_of(contents, file, labels), .y = labels})};
}

DataFiles read_texts(const std::vector<fs::path>& files, const DataOptions& options, double test_fraction) {
  require_no_label(options, "text", "the bytes themselves");
  std::vector<torch::Tensor> heads;
  std::vector<torch::Tensor> tails;
  for (const fs::path& file : files) {
    const torch::Tensor bytes = data::read_text({file});
    const auto held_back = std::llround(test_fraction * static_cast<double>(bytes.size(0)));
    heads.push_back(bytes.narrow(0, 0, bytes.size(0) - held_back));
    tails.push_back(bytes.narrow(0, bytes.size(0) - held_back, held_back));
  }
  return {.train = data::sequences(at::cat(heads), options.sequence),
          .test = data::sequences(at::cat(tails), options.sequence)};
}

std::vector<fs::path> files_ending(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool wanted = ending.empty() ? name.find('.') == std::string::npos : name.ends_with(ending);
    if (wanted && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.')) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace brigade::cli
