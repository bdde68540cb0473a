#include "data_source.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "brigade/base/error.h"
#include "brigade/data/fashion_mnist.h"
#include "brigade/random/permutation.h"
#include "data_files.h"

namespace brigade::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFashionMnist = "fashion-mnist";
constexpr const char* kFortunes = "fortunes";
constexpr const char* kFortunesFolder = "/usr/share/games/fortunes";
constexpr double kTestFraction = 0.1;

// The rows that are held back do not depend on the seed, so that runs with several are measured on the same.
constexpr std::int64_t kSplitSeed = 0;

// Endings of files, each also with .gz where its reader unpacks.
bool ends_in(const std::string& path, const std::vector<std::string>& endings) {
  for (const std::string& ending : endings) {
    if (path.ends_with(ending) || path.ends_with(ending + ".gz")) return true;
  }
  return false;
}

// What would do instead of what was found.
std::string advice(Task task) {
  if (task == Task::kNextByte) {
    return fmt::format("A language model takes a text file, a folder with .txt files, or \"{}\"", kFortunes);
  }
  return fmt::format(
      "Give \"{}\" (Debian's package dataset-fashion-mnist), a folder with the IDX files of MNIST or Fashion-MNIST "
      "(train-images-idx3-ubyte, train-labels-idx1-ubyte, plain or .gz), a folder with a folder of PNG or JPEG images "
      "for "
      "each class, or a .csv, .npy or .safetensors file",
      kFashionMnist);
}

[[noreturn]] void refuse(const std::string& path, const std::string& found, Task task) {
  throw DataError(fmt::format("{}: {}. {}", path, found, advice(task)));
}

// "3 files and 2 folders, such as a.bin".
std::string contents_of(const fs::path& folder) {
  std::int64_t files = 0;
  std::int64_t folders = 0;
  std::string first;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    ++(entry.is_directory() ? folders : files);
    const std::string name = entry.path().filename().string();
    if (first.empty() || name < first) first = name;
  }
  if (first.empty()) return "nothing";
  return fmt::format("{} file{} and {} folder{}, such as {}", files, files == 1 ? "" : "s", folders,
                     folders == 1 ? "" : "s", first);
}

std::vector<fs::path> fortunes() {
  std::error_code ignored;
  if (!fs::is_directory(kFortunesFolder, ignored)) {
    throw DataError(
        fmt::format("{}: there is no folder {}. On Debian: apt-get install fortunes. Elsewhere: give a text file "
                    "of a megabyte or more by --data",
                    kFortunes, kFortunesFolder));
  }
  return files_ending(kFortunesFolder, "");
}

std::vector<fs::path> texts_at(const std::string& path) {
  if (path == kFortunes) return fortunes();
  if (fs::is_directory(path)) {
    std::vector<fs::path> files = files_ending(path, ".txt");
    if (files.empty()) refuse(path, fmt::format("it holds {}, and no .txt file", contents_of(path)), Task::kNextByte);
    return files;
  }
  if (ends_in(path, {".npy", ".safetensors", ".png", ".jpg", "-ubyte"}))
    refuse(path, "this is no text", Task::kNextByte);
  return {path};
}

DataFiles folder_at(const std::string& path, const DataOptions& options) {
  if (holds_idx(path)) return read_idx_folder(path);
  if (!folders_in(path).empty()) return read_image_folder(path, options);
  refuse(path, fmt::format("the folder holds {}: neither IDX files nor folders of images", contents_of(path)),
         Task::kClass);
}

DataFiles file_at(const std::string& path, const DataOptions& options) {
  if (ends_in(path, {".csv", ".tsv"})) return read_csv(path, options);
  if (path.ends_with(".npy")) return read_npy_pair(path, options);
  if (path.ends_with(".safetensors")) return read_safetensors_pair(path, options);
  if (ends_in(path, {".txt", ".md"})) refuse(path, "text is for --model transformer", Task::kClass);
  const std::string ending = fs::path(path).extension().string();
  refuse(path,
         ending.empty() ? std::string("the file's name has no ending that says what it is")
                        : fmt::format("files that end in {} are not read", ending),
         Task::kClass);
}

void require_there(const std::string& path, Task task) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return;
  const std::string nearest = nearest_name(path, {kFashionMnist, kFortunes});
  refuse(path,
         fmt::format("there is no such file or folder{}", nearest.empty() ? "" : ". Is \"" + nearest + "\" meant?"),
         task);
}

data::Dataset rows_of(const data::Dataset& all, const torch::Tensor& rows) {
  data::Dataset part = all;
  part.x = all.x.index_select(0, rows);
  part.y = all.y.index_select(0, rows);
  return part;
}

// A random part for testing, the same at every call.
data::Splits split(const data::Dataset& all, double test_fraction) {
  const std::int64_t rows = all.rows();
  const auto held_back = static_cast<std::int64_t>(std::llround(test_fraction * static_cast<double>(rows)));
  if (held_back < 1 || held_back >= rows) {
    throw InvalidArgument(
        fmt::format("--test-fraction {:g} of {} rows is {}: give a part that leaves rows on both sides", test_fraction,
                    rows, held_back));
  }
  const torch::Tensor order = random::permutation(random::key(kSplitSeed), rows);
  return {.train = rows_of(all, order.narrow(0, held_back, rows - held_back)),
          .test = rows_of(all, order.narrow(0, 0, held_back))};
}

std::string share_text(double fraction, std::string_view of) { return fmt::format("{:g} % of {}", 100 * fraction, of); }

DataSource with_test_rows(DataFiles files, const DataOptions& options) {
  DataSource source;
  if (!files.test) {
    const double fraction = options.test_fraction.value_or(kTestFraction);
    source.splits = split(files.train, fraction);
    source.test_from = share_text(fraction, "the rows");
    return source;
  }
  if (options.test_fraction) {
    throw InvalidArgument("--test-fraction has no meaning here: this data has a test set of its own");
  }
  source.splits = {.train = std::move(files.train), .test = std::move(*files.test)};
  source.test_from = "the test set";
  return source;
}

void normalise(DataSource& source) {
  if (source.splits.train.x.scalar_type() == at::kByte) {
    source.byte_scale = byte_scale(source.splits.train.x);
  } else {
    standardize(source.splits);
  }
}

void require_one_label(const DataSource& source) {
  if (source.splits.train.y.dim() == 1) return;
  throw InvalidArgument(fmt::format("{}: labels are {}, where the networks for classes take one a row", source.name,
                                    fmt::join(source.splits.train.y.sizes(), " x ")));
}

DataSource read_classes(const DataOptions& options) {
  const std::string path = options.path.empty() ? kFashionMnist : options.path;
  DataSource source;
  if (path == kFashionMnist) {
    data::Splits splits = data::fashion_mnist();
    source = with_test_rows({.train = std::move(splits.train), .test = std::move(splits.test)}, options);
    source.name = "Fashion-MNIST";
    source.byte_scale = {.mean = data::kFashionMnistMean, .std = data::kFashionMnistStd};
  } else if (path == kFortunes) {
    refuse(path, "text is for --model transformer", Task::kClass);
  } else {
    require_there(path, Task::kClass);
    source = with_test_rows(fs::is_directory(path) ? folder_at(path, options) : file_at(path, options), options);
    source.name = path;
    require_one_label(source);
    normalise(source);
  }
  source.rows = source.splits.train.x.dim() > 2 ? "images" : "rows";
  return source;
}

DataSource read_bytes(const DataOptions& options) {
  const std::string path = options.path.empty() ? kFortunes : options.path;
  if (path == kFashionMnist) refuse(path, "a language model has no use for images", Task::kNextByte);
  if (path != kFortunes) require_there(path, Task::kNextByte);
  const double fraction = options.test_fraction.value_or(kTestFraction);
  DataFiles files = read_texts(texts_at(path), options, fraction);
  return {.name = path,
          .rows = fmt::format("rows of {} bytes", options.sequence),
          .splits = {.train = std::move(files.train), .test = std::move(*files.test)},
          .test_from = share_text(fraction, "each file")};
}

}  // namespace

DataShape DataSource::shape() const {
  return {.row = splits.train.x.sizes().slice(1).vec(), .classes = splits.train.classes};
}

DataSource read_data(const DataOptions& options, Task task) {
  DataSource source = task == Task::kNextByte ? read_bytes(options) : read_classes(options);
  for (data::Dataset* part : {&source.splits.train, &source.splits.test}) part->y = part->y.to(at::kLong);
  return source;
}

}  // namespace brigade::cli
