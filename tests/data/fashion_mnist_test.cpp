#include "brigade/data/fashion_mnist.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "brigade/base/error.h"
#include "data/idx_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace fashion_mnist_test {

void write_part(const TemporaryFolder& folder, const std::string& part, std::uint32_t rows, const std::string& suffix,
                std::uint32_t side = 28) {
  const auto packed = [&](const Bytes& bytes) { return suffix.empty() ? bytes : gzip(bytes); };
  folder.write(part + "-images-idx3-ubyte" + suffix, packed(idx_file({rows, side, side})));
  folder.write(part + "-labels-idx1-ubyte" + suffix, packed(idx_file({rows}, 10)));
}

// The real set, as Debian's package brings it; the figures are those that its authors state.
TEST(FashionMnist, IsWhatItsAuthorsDescribe) {
  const Splits splits = fashion_mnist();
  EXPECT_EQ(splits.train.x.sizes(), at::IntArrayRef({60000, 28, 28}));
  EXPECT_EQ(splits.test.x.sizes(), at::IntArrayRef({10000, 28, 28}));
  EXPECT_EQ(splits.train.x.scalar_type(), at::kByte);
  EXPECT_EQ(splits.train.classes, 10);
  EXPECT_EQ(splits.test.classes, 10);
  EXPECT_TRUE(at::bincount(splits.train.y).equal(at::full({10}, 6000, at::kLong)));
  EXPECT_TRUE(at::bincount(splits.test.y).equal(at::full({10}, 1000, at::kLong)));
}

TEST(FashionMnist, ConstantsAreThoseOfTheTrainingImages) {
  const torch::Tensor histogram = at::bincount(fashion_mnist().train.x.flatten(), {}, 256).to(at::kDouble);
  const torch::Tensor value = at::arange(256, at::kDouble) / 255;
  const double count = histogram.sum().item<double>();
  const double mean = (histogram * value).sum().item<double>() / count;
  const double variance = (histogram * (value - mean).square()).sum().item<double>() / count;
  EXPECT_NEAR(mean, kFashionMnistMean, 5e-5);
  EXPECT_NEAR(std::sqrt(variance), kFashionMnistStd, 5e-5);
}

TEST(FashionMnist, ReadsPlainAndPackedFilesOfAFolder) {
  const TemporaryFolder folder;
  write_part(folder, "train", 6, "");
  write_part(folder, "t10k", 4, ".gz");
  const Splits splits = fashion_mnist(folder.path());
  EXPECT_EQ(splits.train.rows(), 6);
  EXPECT_EQ(splits.test.rows(), 4);
}

TEST(FashionMnist, SaysWhichFileIsMissingWhereAndHowToGetIt) {
  const TemporaryFolder folder;
  write_part(folder, "train", 6, ".gz");
  expect_error<DataError>([&] { fashion_mnist(folder.path()); }, {"t10k-images-idx3-ubyte.gz", folder.path().string(),
                                                                  "apt-get install dataset-fashion-mnist"});
}

TEST(FashionMnist, RefusesImagesOfAnotherSizeAndNamesTheirFile) {
  const TemporaryFolder folder;
  write_part(folder, "train", 6, "");
  write_part(folder, "t10k", 4, "", 14);
  expect_error<DataError>([&] { fashion_mnist(folder.path()); },
                          {(folder.path() / "t10k-images-idx3-ubyte").string(), "images of 14 x 14", "28 x 28"});
}

}  // namespace fashion_mnist_test
}  // namespace brigade::data
