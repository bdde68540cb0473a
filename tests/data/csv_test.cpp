#include "brigade/data/csv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "brigade/data/loader.h"
#include "data/files.h"
#include "support/errors.h"

namespace brigade::data {
namespace csv_test {

constexpr std::string_view kIris = "length,width,species\n5.1,3.5,setosa\n6,3,virginica\n4.9,3,setosa\n";

TEST(Csv, GivesRowsOfFloatsAndClassesWithTheirNames) {
  const TemporaryFolder folder;
  const Dataset dataset = csv(folder.write_text("iris.csv", kIris), {.label = "species"});
  EXPECT_TRUE(dataset.x.equal(at::tensor({5.1F, 3.5F, 6.0F, 3.0F, 4.9F, 3.0F}).reshape({3, 2})));
  EXPECT_TRUE(dataset.y.equal(at::tensor({0, 1, 0}, at::kLong)));
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"setosa", "virginica"}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(dataset.x.data_ptr()) % 64, 0u);
}

TEST(Csv, ReadsPackedFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(csv(folder.write("iris.csv.gz", gzip(text_bytes(kIris)))).rows(), 3);
}

TEST(Csv, NumbersTheClassesOfATestSetAsThoseOfTheTrainingSet) {
  const TemporaryFolder folder;
  const Dataset train = csv(folder.write_text("train.csv", kIris));
  const Dataset test = csv(folder.write_text("test.csv", "l,w,s\n1,2,virginica\n"), {.class_names = train.class_names});
  EXPECT_TRUE(test.y.equal(at::tensor({1}, at::kLong)));
  EXPECT_EQ(test.classes, 2);
}

TEST(Csv, IsWhatALoaderTakes) {
  const TemporaryFolder folder;
  Loader loader(csv(folder.write_text("iris.csv", kIris)), {.global_batch = 3, .order = Order::kSequential});
  const auto batch = loader.next();
  EXPECT_EQ(batch->shards[0].x.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_TRUE(batch->shards[0].y.equal(at::tensor({0, 1, 0}, at::kLong)));
}

TEST(Csv, NamesTheFileLineAndColumnOfWhatItRefuses) {
  const TemporaryFolder folder;
  const auto path = folder.write_text("iris.csv", "length,width,species\n5.1,,setosa\n");
  EXPECT_ERROR(csv(path), DataError, path.string() + ": line 2, column 1 (\"width\"): the number is missing");
  EXPECT_ERROR(csv(folder.path() / "absent", {.separator = '"'}), InvalidArgument, "separator");
  EXPECT_ERROR(csv(folder.path() / "absent"), DataError, "there is no such file");
}

}  // namespace csv_test
}  // namespace brigade::data
