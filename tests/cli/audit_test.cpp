// `brigade audit` on checkpoints that are the same, differ in one way each, or are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/safetensors_files.h"
#include "guard/store.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace brigade {
namespace audit_test {

using guard::Content;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

guard::Producer producer_of(data::Bytes bytes) {
  return [bytes = std::move(bytes)](const data::ByteSink& sink) { sink(bytes); };
}

// One tensor w [2, 2] of float32 whose last byte is `last`.
data::Bytes model(int last) {
  data::Bytes file = data::safetensors_file(R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", 16);
  file.back() = static_cast<std::byte>(last);
  return file;
}

Content content(std::int64_t step, int last = 15, int epoch = 1) {
  return {.step = step,
          .model = producer_of(model(last)),
          .optimizer = producer_of(data::safetensors_file("{}", 0)),
          .state = {{"epoch", epoch}}};
}

class Audit : public testing::Test {
 protected:
  std::string write(const std::string& name, const Content& what) {
    const auto run = folder_.path() / name;
    guard::Store(guard::system_calls(), {.folder = run}).write(what);
    return run.string();
  }

  static Finished audit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {BRIGADE_PROGRAM, "audit"});
    return run_process(arguments);
  }

  const TemporaryFolder folder_;
};

TEST_F(Audit, EqualCheckpointsEndWithZero) {
  const std::string a = write("a", content(7)), b = write("b", content(7));
  const Finished ran = audit({a, b});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr(a + " (step 7) and " + b + " (step 7) are equal, bit for bit: 1 tensor compared")));
  EXPECT_EQ(audit({a + "/step-00000007", b + "/step-00000007"}).code, 0);
}

TEST_F(Audit, DifferentOnesEndWithFiveAndNameWhatDiffers) {
  const std::string a = write("a", content(7)), b = write("b", content(7, 14, 2));
  const Finished ran = audit({a, b});
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("1 tensor compared, 2 differences"),
                             HasSubstr("model \"w\": 1 of 4 elements differ, first [1, 1]"),
                             HasSubstr("16777216 units"), HasSubstr("state \"/epoch\": 1 and 2")));

  const auto json = nlohmann::json::parse(audit({"--json", a, b}).out);
  EXPECT_FALSE(json.at("equal"));
  EXPECT_EQ(json.at("tensors"), 1);
  EXPECT_EQ(json.at("differences").size(), 2u);
  const auto& one = json.at("differences").at(0);
  EXPECT_EQ(one.at("part"), "model");
  EXPECT_EQ(one.at("name"), "w");
  EXPECT_EQ(one.at("kind"), "values");
  EXPECT_EQ(one.at("index"), nlohmann::json::array({1, 1}));
  EXPECT_EQ(one.at("largest_ulps"), 16777216);
}

TEST_F(Audit, WhoWroteThemIsANoteAndNoDifference) {
  Content on_two = content(7), on_eight = content(7);
  on_two.state["written_by"] = {{"devices", 2}};
  on_eight.state["written_by"] = {{"devices", 8}};
  const std::string a = write("a", on_two), b = write("b", on_eight);
  const Finished ran = audit({a, b});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("note: written_by \"/devices\": 2 and 8"));
  EXPECT_EQ(nlohmann::json::parse(audit({"--json", a, b}).out).at("notes").size(), 1u);
}

TEST_F(Audit, AFileOfTensorsIsComparedWithTheModel) {
  const std::string a = write("a", content(7));
  EXPECT_EQ(audit({a, folder_.write("model.safetensors", model(15)).string()}).code, 0);
  const Finished ran = audit({folder_.write("other.safetensors", model(3)).string(), a});
  EXPECT_EQ(ran.code, 5);
  EXPECT_THAT(ran.out, Not(HasSubstr("state")));
}

TEST_F(Audit, DamagedAndMissingOnesEndWithThree) {
  const std::string a = write("a", content(7)), b = write("b", content(7));
  const auto file = folder_.path() / "b" / "step-00000007" / "model.safetensors";
  std::filesystem::resize_file(file, 20);
  for (const std::string& damaged : {b, b + "/step-00000007"}) {
    const Finished ran = audit({a, damaged});
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr(file.string() + ": has 20 bytes"));
  }
  EXPECT_EQ(audit({a, folder_.path() / "absent"}).code, 3);
  const Finished empty = audit({a, folder_.path()});
  EXPECT_EQ(empty.code, 3);
  EXPECT_THAT(empty.err, HasSubstr("there is no checkpoint in this folder"));
}

TEST_F(Audit, OnePathIsNotEnough) {
  const Finished ran = audit({folder_.path()});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("B is required"));
}

}  // namespace audit_test
}  // namespace brigade
