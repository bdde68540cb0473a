// A run of `brigade train` that is saved, ended and called again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "events.h"
#include "support/temporary_folder.h"

namespace brigade {
namespace train_checkpoint_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> run_in(const fs::path& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--max-steps",      "30", "--global-batch",   "64",
                                        "--logical-shards", "4",  "--checkpoint-dir", folder.string(),
                                        "--save-every",     "10"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string digest_after(const std::vector<nlohmann::json>& events, std::int64_t step) {
  for (const nlohmann::json& event : of_kind(events, "step")) {
    if (event["step"] == step) return event["digest"];
  }
  return "none";
}

Finished audit(const fs::path& one, const fs::path& other) {
  return run_process({BRIGADE_PROGRAM, "audit", one.string(), other.string()});
}

TEST(TrainCheckpoints, AreGoneOnFromToTheBitsOfTheRunThatNeverStopped) {
  const TemporaryFolder folder;
  const auto whole = train(run_in(folder.path() / "whole", {"--devices", "1"}));
  EXPECT_EQ(whole.back()["checkpoint"], (folder.path() / "whole").string());
  train(run_in(folder.path() / "parts", {"--devices", "2", "--keep", "5"}));
  fs::remove_all(folder.path() / "parts" / "step-00000030");  // as if it had ended before
  for (const std::string devices : {"4", "3"}) {
    const auto rest = train(run_in(folder.path() / "parts", {"--devices", devices, "--keep", "5", "--resume"}));
    ASSERT_EQ(of_kind(rest, "resume").size(), 1U);
    const std::int64_t from = of_kind(rest, "resume").front()["steps"];
    EXPECT_EQ(from, devices == "4" ? 20 : 30);
    EXPECT_EQ(rest.back()["steps"], 30);
    EXPECT_EQ(rest.back()["test_loss"], whole.back()["test_loss"]);
    if (from < 30) {
      EXPECT_EQ(digest_after(rest, 29), digest_after(whole, 29));
    }
  }
  const Finished same = audit(folder.path() / "whole", folder.path() / "parts");
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("are equal, bit for bit"), HasSubstr("note: written_by")));
}

TEST(TrainCheckpoints, OfAnotherRunAreNotOverwritten) {
  const TemporaryFolder folder;
  train(run_in(folder.path() / "run"));
  EXPECT_THAT(refusal(run_in(folder.path() / "run"), 3), AllOf(HasSubstr("up to step 30"), HasSubstr("--resume")));
}

TEST(TrainCheckpoints, OfOtherOptionsAreRefusedWithBothSides) {
  const TemporaryFolder folder;
  train(run_in(folder.path() / "run"));
  const Finished other = run_train(run_in(folder.path() / "run", {"--resume", "--optimizer", "adam", "--json"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("momentum_buffer"), HasSubstr("exp_avg"), HasSubstr("nothing was loaded")));
}

TEST(TrainCheckpoints, AreBegunWhereThereAreNone) {
  const TemporaryFolder folder;
  const auto events = train(run_in(folder.path() / "new", {"--resume"}));
  EXPECT_TRUE(of_kind(events, "resume").empty());
  EXPECT_TRUE(fs::exists(folder.path() / "new" / "step-00000030" / "manifest.json"));
}

TEST(TrainCheckpoints, NeedAFolder) {
  for (const std::string option : {"--resume", "--save-every=5", "--keep=3"})
    EXPECT_THAT(refusal({option}), HasSubstr("needs --checkpoint-dir")) << option;
}

TEST(TrainCheckpoints, OfTheBestAccuracyStayBesidesTheNewest) {
  const TemporaryFolder folder;
  train({"--max-steps", "60", "--save-every", "10", "--eval-every", "10", "--keep", "1", "--checkpoint-dir",
         (folder.path() / "run").string(), "--lr", "0.02", "--schedule", "constant"});
  std::size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "run"))
    kept += entry.path().filename().string().starts_with("step-") ? 1 : 0;
  EXPECT_TRUE(fs::exists(folder.path() / "run" / "step-00000060"));
  EXPECT_LE(kept, 2U);
}

TEST(TrainSafety, OptionsReachTheRun) {
  const auto steps = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--max-steps", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return of_kind(train(arguments), "step");
  };
  EXPECT_TRUE(steps({}).front().contains("digest"));
  EXPECT_FALSE(steps({"--audit", "0"}).front().contains("digest"));
  const auto compressed = steps({"--compress", "topk:0.01", "--compress-start", "2"});
  EXPECT_FALSE(compressed[1].contains("compression"));
  const auto& report = compressed[2]["compression"];
  EXPECT_LT(report["wire_bytes"].get<double>(), 0.05 * report["uncompressed_bytes"].get<double>());
  EXPECT_THAT(refusal({"--compress", "topk:x"}), HasSubstr("the share that is sent"));
  EXPECT_THAT(refusal({"--compress", "fp16:3"}), HasSubstr("takes no number"));
  EXPECT_THAT(refusal({"--on-drift", "hael"}), HasSubstr("\"heal\""));
}

}  // namespace train_checkpoint_test
}  // namespace brigade
