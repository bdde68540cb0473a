// What `brigade train` makes of the data that it is pointed at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "data/idx_files.h"
#include "data/npy_files.h"
#include "events.h"
#include "support/temporary_folder.h"

namespace brigade {
namespace train_data_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kRows = 200;

// Two numbers far from each other's units; the class says on which side of a wide gap the first one lies.
float first_number(int row) { return static_cast<float>(row % 2 == 0 ? 1000 + row % 7 : 1100 + row % 5); }
float second_number(int row) { return static_cast<float>(row % 11) * 1e-3F; }

std::string table(const std::string& head, const std::string& even, const std::string& odd) {
  std::string text = head + "\n";
  for (int row = 0; row < kRows; ++row) {
    text += std::to_string(first_number(row)) + "," + (row % 2 == 0 ? even : odd) + "," +
            std::to_string(second_number(row)) + "\n";
  }
  return text;
}

data::Bytes bytes_of_rows() {
  data::Bytes bytes;
  for (int row = 0; row < kRows; ++row) {
    for (const float number : {first_number(row), second_number(row)}) {
      std::byte four[4];
      std::memcpy(four, &number, 4);
      bytes.insert(bytes.end(), four, four + 4);
    }
  }
  return bytes;
}

data::Bytes bytes_of_labels() {
  data::Bytes bytes;
  for (int row = 0; row < kRows; ++row) bytes.push_back(static_cast<std::byte>(row % 2));
  return bytes;
}

data::Bytes joined(data::Bytes head, const data::Bytes& tail) {
  data::append(head, tail);
  return head;
}

std::vector<json> train_rows(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--devices", "2", "--per-device-batch", "10", "--epochs", "8"});
  return train(std::move(arguments));
}

// The two classes are far apart once numbers are brought to one scale.
void expect_all_right(const std::vector<json>& events) {
  EXPECT_EQ(events.front()["train_rows"], kRows - kRows / 10);
  EXPECT_EQ(events.front()["classes"], 2);
  EXPECT_EQ(events.back()["test_rows"], kRows / 10);
  EXPECT_EQ(events.back()["test_accuracy"], 1.0);
}

TEST(TrainData, TablesWithTheirLabelsInAColumnByNameOrNumber) {
  const TemporaryFolder folder;
  const std::string file = folder.write_text("flowers.csv", table("size,kind,age", "rose", "tulip")).string();
  expect_all_right(train_rows({"--data", file, "--label", "kind"}));
  expect_all_right(train_rows({"--data", file, "--label", "1"}));
  EXPECT_THAT(refusal({"--data", file, "--label", "kinds"}, 3), HasSubstr("kind"));
}

TEST(TrainData, PairsOfNpyFiles) {
  const TemporaryFolder folder;
  const auto x = folder.write("x.npy", joined(data::npy_file(data::npy_header("<f4", "(200, 2)"), 0), bytes_of_rows()));
  const auto y = folder.write("y.npy", joined(data::npy_file(data::npy_header("|u1", "(200,)"), 0), bytes_of_labels()));
  expect_all_right(train_rows({"--data", x.string(), "--label", y.string()}));
  EXPECT_THAT(refusal({"--data", x.string()}), HasSubstr("name the NPY file that has them by --label"));
}

TEST(TrainData, SafetensorsFiles) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& rows, const std::string& labels) {
    const std::string head = "{\"" + rows + "\":{\"dtype\":\"F32\",\"shape\":[200,2],\"data_offsets\":[0,1600]},\"" +
                             labels + "\":{\"dtype\":\"U8\",\"shape\":[200],\"data_offsets\":[1600,1800]}}";
    data::Bytes file;
    for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(head.size() >> 8 * i));
    data::append(file, data::text_bytes(head));
    data::append(file, bytes_of_rows());
    return folder.write("rows.safetensors", joined(file, bytes_of_labels())).string();
  };
  expect_all_right(train_rows({"--data", write("x", "y")}));
  expect_all_right(train_rows({"--data", write("flowers", "kind"), "--label", "kind"}));
  EXPECT_THAT(refusal({"--data", write("flowers", "kind")}, 3),
              HasSubstr("holds \"flowers\" and \"kind\": name the labels by --label"));
}

TEST(TrainData, FoldersOfImagesWithAFolderForEachClass) {
  const TemporaryFolder folder;
  const std::filesystem::path images = std::filesystem::path(BRIGADE_TEST_CASES) / "images";
  for (const auto& [kind, source] : {std::pair("grey", "grey.png"), std::pair("bright", "alpha.png")}) {
    std::filesystem::create_directories(folder.path() / "photos" / kind);
    for (int i = 0; i < 20; ++i) {
      std::filesystem::copy_file(images / source, folder.path() / "photos" / kind / (std::to_string(i) + ".png"));
    }
  }
  const std::string photos = (folder.path() / "photos").string();
  const std::vector<std::string> small = {
      "--data", photos, "--image-size", "8", "--devices", "2", "--per-device-batch", "3", "--model"};
  for (const std::string model : {"mlp", "cnn", "resnet18"}) {
    SCOPED_TRACE(model);
    auto arguments = small;
    arguments.insert(arguments.end(), {model, "--epochs", "4"});
    const auto events = train(arguments);
    EXPECT_EQ(events.front()["train_rows"], 36);
    EXPECT_EQ(events.back()["test_rows"], 4);
    if (model == "resnet18") continue;               // its running statistics take more steps to settle
    EXPECT_EQ(events.back()["test_accuracy"], 1.0);  // there are only two different images
  }

  // A test set of its own, in the training set's order of classes.
  std::filesystem::create_directories(folder.path() / "split" / "test" / "grey");
  std::filesystem::copy(photos, folder.path() / "split" / "train", std::filesystem::copy_options::recursive);
  std::filesystem::copy_file(images / "grey.png", folder.path() / "split" / "test" / "grey" / "1.png");
  const auto events = train({"--data", (folder.path() / "split").string(), "--image-size", "8", "--devices", "2",
                             "--per-device-batch", "4", "--epochs", "4"});
  EXPECT_EQ(events.front()["train_rows"], 40);
  EXPECT_EQ(events.back()["test_rows"], 1);
  EXPECT_EQ(events.back()["test_accuracy"], 1.0);
}

TEST(TrainData, IdxImagesOfAnySizeWithOrWithoutATestSet) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", data::idx_file({60, 12, 8}));
  folder.write("train-labels-idx1-ubyte", data::idx_file({60}, 5));
  const std::vector<std::string> run = {"--data", folder.path().string(), "--devices", "2",       "--per-device-batch",
                                        "8",      "--max-steps",          "2",         "--model", "cnn"};
  const auto without = train(run);
  EXPECT_EQ(without.front()["classes"], 5);
  EXPECT_EQ(without.front()["train_rows"], 54);
  EXPECT_EQ(without.front()["test_rows"], 6);

  folder.write("t10k-images-idx3-ubyte", data::idx_file({7, 12, 8}));
  folder.write("t10k-labels-idx1-ubyte", data::idx_file({7}, 5));
  const auto with = train(run);
  EXPECT_EQ(with.front()["train_rows"], 60);
  EXPECT_EQ(with.back()["test_rows"], 7);
  EXPECT_THAT(refusal({"--data", folder.path().string(), "--test-fraction", "0.2"}),
              HasSubstr("--test-fraction has no meaning here"));
}

TEST(TrainData, TextForTheLanguageModelWithTheEndOfEachFileHeldBack) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "abcd";
  folder.write_text("a.txt", text);
  folder.write_text("b.txt", text);
  folder.write_text("c.bin", std::string(1000, 'x'));  // no text, so it stays out
  const auto events =
      train({"--model", "transformer", "--data", folder.path().string(), "--sequence", "16", "--devices", "2",
             "--per-device-batch", "8", "--max-steps", "40", "--test-fraction", "0.25"});
  // 3 of 4 parts of 24,000 bytes, in rows of 16 bytes that each need one more.
  EXPECT_EQ(events.front()["train_rows"], (18'000 - 1) / 16);
  EXPECT_EQ(events.back()["test_rows"], (6'000 - 1) / 16);
  EXPECT_EQ(events.front()["classes"], 256);
  // After each byte there is one that can follow; chance is 1 of 256.
  EXPECT_GT(events.back()["test_accuracy"].get<double>(), 0.9);
  EXPECT_NEAR(events.back()["test_perplexity"].get<double>(), std::exp(events.back()["test_loss"].get<double>()), 1e-9);
}

TEST(TrainData, TheLanguageModelHasTheSameLossesOnAnyNumberOfDevices) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + ' ';
  const std::string file = folder.write_text("squares.txt", text).string();
  const auto losses = [&](const std::string& devices) {
    return losses_of(train({"--model", "transformer", "--data", file, "--sequence", "16", "--global-batch", "12",
                            "--logical-shards", "4", "--max-steps", "4", "--devices", devices}));
  };
  const auto one = losses("1");
  ASSERT_EQ(one.size(), 4U);
  EXPECT_EQ(losses("2"), one);
  EXPECT_EQ(losses("4"), one);
}

TEST(TrainData, DropoutIsTheSameOnAnyNumberOfDevices) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + ' ';
  const std::string file = folder.write_text("squares.txt", text).string();
  const auto run = [&](const std::string& devices, const std::string& dropout) {
    return train({"--model", "transformer", "--data", file, "--sequence", "16", "--global-batch", "12", "--warmup", "0",
                  "--logical-shards", "4", "--max-steps", "4", "--devices", devices, "--dropout", dropout});
  };
  const auto dropped = run("1", "0.5");
  EXPECT_EQ(losses_of(run("2", "0.5")), losses_of(dropped));
  EXPECT_EQ(run("4", "0.5").back()["test_loss"], dropped.back()["test_loss"]);
  EXPECT_NE(losses_of(run("1", "0")), losses_of(dropped));
}

TEST(TrainData, TheResnetHasTheSameLossesOnAnyNumberOfDevicesByEitherNormalisation) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", data::idx_file({40, 8, 8}));
  folder.write("train-labels-idx1-ubyte", data::idx_file({40}, 5));
  const auto run = [&](const std::string& devices, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--model",   "resnet18", "--data", folder.path().string(),
                                          "--devices", devices};
    arguments.insert(arguments.end(), {"--global-batch", "12", "--logical-shards", "4", "--max-steps", "3"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return train(arguments);
  };
  const auto by_shard = run("1", {});
  const auto by_step = run("1", {"--sync-bn"});
  EXPECT_NE(losses_of(by_shard), losses_of(by_step));
  for (const std::string devices : {"2", "4"}) {
    EXPECT_EQ(losses_of(run(devices, {})), losses_of(by_shard));
    const auto several = run(devices, {"--sync-bn"});
    EXPECT_EQ(losses_of(several), losses_of(by_step));
    EXPECT_EQ(several.back()["test_loss"], by_step.back()["test_loss"]);  // which running statistics enter
  }
}

TEST(TrainData, FortunesAreAMegabyteOfText) {
  const auto events = train({"--model", "transformer", "--sequence", "8", "--per-device-batch", "2", "--devices", "2",
                             "--max-steps", "1", "--test-fraction", "0.001"});
  EXPECT_EQ(events.front()["data"], "fortunes");
  EXPECT_GT(events.front()["train_rows"].get<std::int64_t>() * 8, 1'000'000);
}

TEST(TrainData, HoldsTheSameRowsBackWhateverTheSeedIs) {
  // All rows are alike, so the answer is the more frequent class for each, and as many are right as the test rows have of it.
  std::string text = "number,kind\n";
  for (int row = 0; row < kRows; ++row) text += row * row % 7 < 3 ? "5,often\n" : "5,seldom\n";
  const TemporaryFolder folder;
  const std::string file = folder.write_text("alike.csv", text).string();
  const auto correct = [&](const std::string& seed) {
    const json end = train({"--data", file, "--devices", "1", "--per-device-batch", "140", "--epochs", "40", "--lr",
                            "0.1", "--scale-lr", "none", "--seed", seed, "--test-fraction", "0.3"})
                         .back();
    EXPECT_EQ(end["test_rows"], 60);
    return end["test_correct"].get<int>();
  };
  const int first = correct("1");
  for (const std::string seed : {"2", "3", "4"}) EXPECT_EQ(correct(seed), first);
}

TEST(TrainData, WhatIsNotThereOrCannotBeReadIsRefusedWithWhatWouldDo) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal({"--data", "fashion-mnits"}, 3), HasSubstr("Is \"fashion-mnist\" meant?"));
  EXPECT_THAT(refusal({"--data", "/nowhere/x.csv"}, 3),
              AllOf(HasSubstr("/nowhere/x.csv: there is no such file or folder"), HasSubstr(".safetensors")));
  const std::string parquet = folder.write_text("rows.parquet", "PAR1").string();
  EXPECT_THAT(refusal({"--data", parquet}, 3), HasSubstr("files that end in .parquet are not read"));
  EXPECT_THAT(refusal({"--data", folder.path().string()}, 3),
              HasSubstr("the folder holds 1 file and 0 folders, such as rows.parquet: neither IDX files nor"));
  const std::string text = folder.write_text("book.txt", "once upon a time").string();
  EXPECT_THAT(refusal({"--data", text}, 3), HasSubstr("text is for --model transformer"));
  EXPECT_THAT(refusal({"--data", "fortunes"}, 3), HasSubstr("text is for --model transformer"));
  EXPECT_THAT(refusal({"--data", "fashion-mnist", "--model", "transformer"}, 3),
              HasSubstr("a language model has no use for images"));
  EXPECT_THAT(refusal({"--model", "transformer", "--data", "/usr/share/datasets/fashion-mnist"}, 3),
              HasSubstr("no .txt file"));
}

TEST(TrainData, NetworksForImagesRefuseRowsOfNumbers) {
  const TemporaryFolder folder;
  const std::string file = folder.write_text("flowers.csv", table("size,kind,age", "0", "1")).string();
  EXPECT_THAT(refusal({"--model", "cnn", "--data", file, "--label", "kind"}),
              HasSubstr("cnn is a network for images, and the rows of this data are 2"));
}

}  // namespace train_data_test
}  // namespace brigade
