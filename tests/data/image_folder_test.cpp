#include "brigade/data/image_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "brigade/data/npy.h"
#include "data/files.h"
#include "support/case_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace image_folder_test {

namespace fs = std::filesystem;

const fs::path kRecorded = cases::own_path("images");

// A folder of classes that goes away with the test.
class Photos {
 public:
  Photos& add(const std::string& where, const std::string& recorded) {
    const fs::path path = folder_.path() / where;
    fs::create_directories(path.parent_path());
    fs::copy_file(kRecorded / recorded, path);
    return *this;
  }
  const fs::path& path() const { return folder_.path(); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// [channels, height, width]
torch::Tensor recorded(const std::string& name) { return read_npy(kRecorded / (name + ".npy")).permute({2, 0, 1}); }

TEST(ImageFolder, OrdersImagesByClassAndName) {
  Photos photos;
  photos.add("dog/2.png", "palette.png").add("dog/10.png", "rgb.png").add("Cat/a", "colour.jpg");
  photos.add("dog/.hidden", "make.py").add("README", "make.py").add(".git/x", "rgb.png");
  const Dataset dataset = image_folder(photos.path());
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"Cat", "dog"}));
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_TRUE(dataset.y.equal(at::tensor({0, 1, 1}, at::kLong)));
  EXPECT_EQ(dataset.x.sizes(), at::IntArrayRef({3, 3, 12, 17}));
  EXPECT_EQ(dataset.x.scalar_type(), at::kByte);
  EXPECT_TRUE(dataset.x[1].equal(recorded("rgb")));
  EXPECT_TRUE(dataset.x[2].equal(recorded("palette")));
}

TEST(ImageFolder, KeepsOneChannelWhenAskedForGrey) {
  Photos photos;
  const Dataset dataset =
      image_folder(photos.add("a/1.png", "grey.png").add("a/2.png", "grey_of_rgb.png").path(), {.color = Color::kGrey});
  EXPECT_EQ(dataset.x.sizes(), at::IntArrayRef({2, 1, 12, 17}));
  EXPECT_TRUE(dataset.x[0].equal(recorded("grey")));
  EXPECT_TRUE(dataset.x[1].equal(recorded("grey_of_rgb")));
}

// Up and down, against Pillow's filter of the same name; it keeps whole numbers between its two passes.
TEST(ImageFolder, ResizesAsPillowDoes) {
  Photos photos;
  photos.add("a/1.png", "smooth.png");
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{5, 6}, {24, 34}}) {
    const Dataset dataset = image_folder(photos.path(), {.height = height, .width = width});
    const torch::Tensor expected =
        recorded("resized_" + std::to_string(height) + "x" + std::to_string(width)).to(at::kInt);
    EXPECT_EQ(dataset.x.sizes(), at::IntArrayRef({1, 3, height, width}));
    EXPECT_LE((dataset.x[0].to(at::kInt) - expected).abs().max().item<int>(), 1);
  }
}

TEST(ImageFolder, NamesTheFirstImageOfAnotherSize) {
  Photos photos;
  photos.add("a/1.png", "rgb.png").add("b/1.png", "rgb.png").add("b/2.png", "other_size.png");
  const auto path = photos.path() / "b" / "2.png";
  expect_error<DataError>([&] { image_folder(photos.path()); },
                          {path.string() + ": is 3 x 4, where the images before it are 12 x 17", ".height"});
  EXPECT_EQ(image_folder(photos.path(), {.height = 8, .width = 8}).x.sizes(), at::IntArrayRef({3, 3, 8, 8}));
}

TEST(ImageFolder, NumbersTheClassesOfATestSetAsThoseOfTheTrainingSet) {
  Photos photos;
  photos.add("dog/1.png", "rgb.png");
  const Dataset dataset = image_folder(photos.path(), {.class_names = {"cat", "dog"}});
  EXPECT_TRUE(dataset.y.equal(at::tensor({1}, at::kLong)));
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_ERROR(image_folder(photos.path(), {.class_names = {"cat"}}), DataError,
               "has the folder \"dog\", which is not among the 1 class names given");
  EXPECT_ERROR(image_folder(photos.path(), {.class_names = {"dog", "dog"}}), InvalidArgument, "given twice");
}

TEST(ImageFolder, ClassNamesThatAreNoFoldersAreNoPaths) {
  Photos photos;
  photos.add("inside/dog/1.png", "rgb.png").add("outside/1.png", "rgb.png");
  const Dataset dataset = image_folder(photos.path() / "inside", {.class_names = {"../outside", "dog"}});
  EXPECT_TRUE(dataset.y.equal(at::tensor({1}, at::kLong)));
}

TEST(ImageFolder, SaysWhatAFolderLacks) {
  Photos photos;
  const auto with = [&](const fs::path& path) { return [path] { image_folder(path); }; };
  expect_error<DataError>(with(photos.path()), {photos.path().string() + ": holds no folder"});
  expect_error<DataError>(with(photos.path() / "absent"), {"absent: cannot be listed: No such file"});
  photos.add("a/1.png", "rgb.png");
  fs::create_directory(photos.path() / "b");
  expect_error<DataError>(with(photos.path()), {(photos.path() / "b").string() + ": holds no image"});
  expect_error<DataError>(with(photos.path() / "a" / "1.png"), {"1.png: cannot be listed", "Give a folder"});
}

TEST(ImageFolder, NamesTheFileThatIsNoImage) {
  Photos photos;
  photos.add("a/1.png", "rgb.png").add("a/notes.txt", "make.py");
  const auto notes = photos.path() / "a" / "notes.txt";
  EXPECT_ERROR(image_folder(photos.path()), DataError, notes.string() + ": is neither a PNG nor a JPEG file");
  fs::remove(notes);
  fs::create_directory(photos.path() / "a" / "deeper");
  EXPECT_ERROR(image_folder(photos.path()), DataError, "deeper: is a directory");
}

TEST(ImageFolder, HoldsToItsLimits) {
  Photos photos;
  photos.add("a/1.png", "rgb.png").add("a/2.png", "rgb.png");
  EXPECT_EQ(image_folder(photos.path(), {.max_bytes = 2 * 3 * 12 * 17}).rows(), 2);
  EXPECT_ERROR(image_folder(photos.path(), {.max_bytes = 2 * 3 * 12 * 17 - 1}), DataError,
               "holds 2 images of 12 x 17, which take more than the limit of 1223 bytes");
  EXPECT_ERROR(image_folder(photos.path(), {.max_pixels = 203}), DataError, "1.png: is an image of 12 x 17, above");
  EXPECT_ERROR(image_folder(photos.path(), {.height = 8}), InvalidArgument, "cannot be resized to 8 x 0");
  EXPECT_ERROR(image_folder(photos.path(), {.height = -1, .width = -1}), InvalidArgument, "-1 x -1");
}

}  // namespace image_folder_test
}  // namespace brigade::data
