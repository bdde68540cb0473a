// What the program says to those who call it wrongly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/idx_files.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace brigade {
namespace usage_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Finished brigade_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), BRIGADE_PROGRAM);
  return run_process(arguments);
}

TEST(Usage, HelpHasAnExampleForEachCommand) {
  for (const std::string command : {"train", "devices", "audit"}) {
    const Finished ran = brigade_program({command, "--help"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("Example: brigade " + command));
    EXPECT_THAT(ran.err, IsEmpty());
  }
  EXPECT_THAT(brigade_program({"--version"}).out, HasSubstr("brigade "));
}

TEST(Usage, NoCommandOrAnUnknownOneNamesWhatThereIs) {
  EXPECT_EQ(brigade_program({}).code, 2);
  const Finished ran = brigade_program({"trian"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("is \"train\" meant?"), HasSubstr("brigade --help")));
}

TEST(Usage, AnUnknownOptionSuggestsTheNearest) {
  const Finished ran = brigade_program({"train", "--device", "2"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("is \"--devices\" meant?"));
}

TEST(Usage, AnUnknownModelSuggestsTheNearest) {
  const Finished ran = brigade_program({"train", "--model", "mpl"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("there is no model \"mpl\"; there are \"mlp\", \"cnn\", \"resnet18\" and "
                                 "\"transformer\". Is \"mlp\" meant?"));
  EXPECT_THAT(brigade_program({"train", "--model", "perceptron"}).err,
              HasSubstr("there is no model \"perceptron\"; there are \"mlp\", \"cnn\""));
}

TEST(Usage, DevicesThatAreZeroNegativeOrNoNumberAreRefused) {
  for (const std::string value : {"0", "-2", "two", "1.5", "2000"}) {
    const Finished ran = brigade_program({"train", "--devices=" + value});
    EXPECT_EQ(ran.code, 2) << value;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--devices"), HasSubstr(value)));
  }
}

TEST(Usage, NumbersOutOfRangeAreRefusedByName) {
  for (const std::string option : {"--per-device-batch=0", "--epochs=0", "--max-steps=-1", "--lr=0", "--lr=-0.1",
                                   "--momentum=1.5", "--seed=x", "--seed=-1", "--seed=4294967296"}) {
    const Finished ran = brigade_program({"train", option});
    EXPECT_EQ(ran.code, 2) << option;
    EXPECT_THAT(ran.err, HasSubstr(option.substr(0, option.find('='))));
  }
}

TEST(Usage, MissingDataNamesFileFolderAndPackage) {
  const TemporaryFolder folder;
  const Finished ran = brigade_program({"train", "--data", folder.path().string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr(folder.path().string()),
                             HasSubstr("dataset-fashion-mnist")));
}

TEST(Usage, CorruptDataIsRefused) {
  const TemporaryFolder folder;
  for (const std::string name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    folder.write_text(name, "not an IDX file");
  }
  const Finished ran = brigade_program({"train", "--data", folder.path().string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr((folder.path() / "t").string()), HasSubstr("IDX")));
}

TEST(Usage, ImagesOfAnotherSizeAreRefused) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", data::idx_file({6, 28, 28}));
  folder.write("train-labels-idx1-ubyte", data::idx_file({6}, 10));
  const auto smaller = folder.write("t10k-images-idx3-ubyte", data::idx_file({4, 14, 14}));
  folder.write("t10k-labels-idx1-ubyte", data::idx_file({4}, 10));
  const Finished ran = brigade_program({"train", "--data", folder.path().string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr(smaller.string() + ": holds images of 14 x 14, where those of " +
                                 (folder.path() / "train-images-idx3-ubyte").string() + " are 28 x 28"));
}

}  // namespace usage_test
}  // namespace brigade
