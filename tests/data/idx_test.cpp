#include "brigade/data/idx.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "brigade/base/error.h"
#include "data/idx_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace idx_test {

TEST(ReadIdx, GivesBytesOfTheStatedShape) {
  const TemporaryFolder folder;
  const Bytes content = idx_file({3, 2, 4});
  const torch::Tensor tensor = read_idx(folder.write("images.gz", gzip(content)));
  EXPECT_EQ(tensor.scalar_type(), at::kByte);
  EXPECT_EQ(tensor.sizes(), at::IntArrayRef({3, 2, 4}));
  EXPECT_EQ(std::memcmp(tensor.data_ptr(), content.data() + 16, 24), 0);
}

TEST(ReadIdx, HoldsToItsLimit) {
  const TemporaryFolder folder;
  const auto file = folder.write("images", idx_file({3, 2, 4}));
  expect_error<DataError>([&] { read_idx(file, {.max_bytes = 23}); }, {file.string(), "limit of 23"});
}

TEST(Idx, PairsImagesWithLabels) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx_file({5, 3, 2, 4}));
  const auto labels = folder.write("labels", idx_file({5}, 4));
  const Dataset dataset = idx(images, labels);
  EXPECT_EQ(dataset.rows(), 5);
  EXPECT_EQ(dataset.x.sizes(), at::IntArrayRef({5, 3, 2, 4}));
  EXPECT_TRUE(dataset.y.equal(at::tensor({0, 3, 2, 1, 0}, at::kLong)));
  EXPECT_EQ(dataset.classes, 4);
  EXPECT_EQ(idx(images, labels, {.classes = 10}).classes, 10);
}

TEST(Idx, RefusesFilesThatDoNotBelongTogether) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx_file({5, 2, 4}));
  const auto labels = folder.write("labels", idx_file({4}, 4));
  expect_error<DataError>([&] { idx(images, labels); },
                          {labels.string(), "4 labels for the 5 rows of " + images.string(), "the two of one set"});
}

TEST(Idx, RefusesSwappedFiles) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx_file({5, 2, 4}));
  const auto labels = folder.write("labels", idx_file({5}, 4));
  expect_error<DataError>([&] { idx(labels, images); }, {labels.string(), "dimensions 5,", "swapped"});
  expect_error<DataError>([&] { idx(images, images); }, {"dimensions 5 x 2 x 4", "labels have one", "swapped"});
}

TEST(Idx, RefusesALabelThatIsNoClass) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx_file({5, 2, 4}));
  const auto labels = folder.write("labels", idx_file({5}));  // 0 7 14 21 28
  EXPECT_EQ(idx(images, labels, {.classes = 29}).classes, 29);
  expect_error<DataError>([&] { idx(images, labels, {.classes = 28}); },
                          {labels.string(), "label 28 at row 4", "28 classes, 0 to 27"});
  expect_error<InvalidArgument>([&] { idx(images, labels, {.classes = -1}); }, {"-1 classes"});
}

}  // namespace idx_test
}  // namespace brigade::data
