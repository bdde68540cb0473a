// Every byte of a checkpoint flipped, and every length of its files: always refused, with the one before in its place.
#include <gmock/gmock.h>

#include <functional>

#include "brigade/base/error.h"
#include "guard/support.h"

namespace brigade::guard {
namespace damage_test {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::string> kFiles = {"manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"};

class Damage : public ::testing::Test {
 protected:
  Damage() { write(folder_.path(), {1, 2}); }

  std::filesystem::path file(const std::string& name) const { return folder_.path() / "step-00000002" / name; }

  // Of the newest checkpoint's file, in many ways.
  void expect_refused(const std::string& name,
                      const std::function<std::vector<std::string>(const std::string&)>& damages) {
    const std::string sound = text_of(file(name));
    for (const std::string& damaged : damages(sound)) {
      put_text(file(name), damaged);
      std::optional<Loaded> found;
      const std::string said = logged_by([&] { found = newest_in(folder_.path()); });
      ASSERT_EQ(found, example(1)) << name << " is " << damaged;
      ASSERT_THAT(said, AllOf(HasSubstr("the checkpoint of step 2 cannot be used, so the one of step 1 is tried"),
                              HasSubstr(file(name).parent_path().string())));
    }
    put_text(file(name), sound);
    EXPECT_EQ(newest_in(folder_.path()), example(2));
  }

  const TemporaryFolder folder_;
};

TEST_F(Damage, OfAnyByteIsFound) {
  for (const std::string& name : kFiles) {
    expect_refused(name, [](const std::string& sound) {
      std::vector<std::string> damaged;
      for (std::size_t i = 0; i < sound.size(); ++i) {
        for (const char change : {'\x01', '\x20', '\x80', '\xff'}) {
          damaged.push_back(sound);
          damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ change);
        }
      }
      return damaged;
    });
  }
}

TEST_F(Damage, OfAnyLengthIsFound) {
  for (const std::string& name : kFiles) {
    expect_refused(name, [](const std::string& sound) {
      std::vector<std::string> damaged;
      for (std::size_t size = 0; size < sound.size(); ++size) damaged.push_back(sound.substr(0, size));
      for (const std::string& more : std::vector<std::string>{"\n", " ", std::string(1, '\0'), "{}"})
        damaged.push_back(sound + more);
      damaged.push_back(sound + sound);
      return damaged;
    });
  }
}

TEST_F(Damage, OfAMissingFileIsFound) {
  for (const std::string& name : kFiles) {
    const std::string sound = text_of(file(name));
    std::filesystem::remove(file(name));
    std::optional<Loaded> found;
    EXPECT_THAT(logged_by([&] { found = newest_in(folder_.path()); }), HasSubstr(name));
    EXPECT_EQ(found, example(1));
    put_text(file(name), sound);
  }
}

// Sound files at the wrong place.
TEST_F(Damage, OfFilesOrFoldersOfAnotherStepIsFound) {
  std::optional<Loaded> found;
  for (const std::string& name : kFiles) {
    const std::string sound = text_of(file(name));
    put_text(file(name), text_of(folder_.path() / "step-00000001" / name));
    (void)logged_by([&] { found = newest_in(folder_.path()); });
    EXPECT_EQ(found, example(1)) << name;
    put_text(file(name), sound);
  }
  std::filesystem::rename(folder_.path() / "step-00000002", folder_.path() / "step-00000003");
  EXPECT_THAT(logged_by([&] { found = newest_in(folder_.path()); }),
              HasSubstr("is of step 2, so the folder was renamed"));
  EXPECT_EQ(found, example(1));
}

// Memory follows limits, and not the sizes of files: these have a terabyte.
TEST_F(Damage, OfHugeFilesIsFoundAtOnce) {
  for (const std::string& name : kFiles) {
    const std::string sound = text_of(file(name));
    std::filesystem::resize_file(file(name), std::uintmax_t{1} << 40);
    std::optional<Loaded> found;
    EXPECT_THAT(logged_by([&] { found = newest_in(folder_.path()); }), HasSubstr(name + ": has 1099511627776 bytes"));
    EXPECT_EQ(found, example(1));
    put_text(file(name), sound);
  }
}

}  // namespace damage_test
}  // namespace brigade::guard
