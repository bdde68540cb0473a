#include "brigade/data/fashion_mnist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <system_error>

#include "brigade/data/idx.h"
#include "data/errors.h"

namespace brigade::data {
namespace {

constexpr std::string_view kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSide = 28;

std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  for (const std::string& candidate : {name + ".gz", name}) {
    std::error_code ignored;  // what cannot be examined is refused when it is opened
    if (std::filesystem::exists(folder / candidate, ignored)) return folder / candidate;
  }
  refuse("Fashion-MNIST", fmt::format("there is neither {0}.gz nor {0} in {1}. On Debian: apt-get install "
                                      "dataset-fashion-mnist. Elsewhere: fetch the four files from "
                                      "https://github.com/zalandoresearch/fashion-mnist and name their folder.",
                                      name, folder.string()));
}

Dataset read(const std::filesystem::path& folder, const std::string& part) {
  const std::filesystem::path images = find(folder, part + "-images-idx3-ubyte");
  const std::filesystem::path labels = find(folder, part + "-labels-idx1-ubyte");
  Dataset dataset = idx(images, labels, {.classes = kClasses});
  const auto sizes = dataset.x.sizes().slice(1);
  if (!sizes.equals({kSide, kSide})) {
    refuse(images.string(), fmt::format("holds images of {}, where those of Fashion-MNIST and MNIST are {} x {}. Give "
                                        "the folder of one of the two.",
                                        fmt::join(sizes, " x "), kSide, kSide));
  }
  return dataset;
}

}  // namespace

Splits fashion_mnist(const std::filesystem::path& folder) {
  const std::filesystem::path from = folder.empty() ? std::filesystem::path(kDebianFolder) : folder;
  return {.train = read(from, "train"), .test = read(from, "t10k")};
}

}  // namespace brigade::data
