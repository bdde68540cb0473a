// Options out of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events.h"
#include "support/temporary_folder.h"

namespace brigade {
namespace config_test {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::string& name, const std::string& text, int code = 2) {
  const TemporaryFolder folder;
  return refusal({"--config", folder.write_text(name, text).string()}, code);
}

TEST(ConfigFile, SaysWhatFlagsSayInEitherForm) {
  const TemporaryFolder folder;
  const auto toml = folder.write_text("run.toml",
                                      "# a short run\n"
                                      "model = \"mlp\"\n"
                                      "devices = 2\n"
                                      "max-steps = 4\n"
                                      "lr = 0.05\n"
                                      "no-share-parameters = true\n"
                                      "json = true\n");
  const auto table = folder.write_text("table.toml", "[train]\ndevices = 2\nmax-steps = 4\nlr = 5e-2\njson = true\n");
  const auto json_file = folder.write_text(
      "run.json", R"({"devices": 2, "max-steps": 4, "lr": 0.05, "no-share-parameters": false, "json": true})");
  const auto expected = losses_of(train({"--devices", "2", "--max-steps", "4", "--lr", "0.05"}));
  ASSERT_EQ(expected.size(), 4U);
  for (const auto& file : {toml, table, json_file}) {
    const Finished ran = run_train({"--config", file.string()});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(losses_of(events_of(ran.out)), expected) << file;
  }
}

TEST(ConfigFile, FlagsOverrideIt) {
  const TemporaryFolder folder;
  const auto file = folder.write_text("run.toml", "max-steps = 9\nlr = 0.05\ndevices = 2\n");
  const auto events = train({"--config", file.string(), "--max-steps", "3", "--seed", "4"});
  EXPECT_EQ(losses_of(events), losses_of(train({"--devices", "2", "--max-steps", "3", "--lr", "0.05", "--seed", "4"})));
  EXPECT_EQ(events.front()["steps"], 3);
}

TEST(ConfigFile, UnknownNamesGetTheNearest) {
  EXPECT_THAT(refusal_of("run.toml", "devicse = 2\n"),
              AllOf(HasSubstr("run.toml"), HasSubstr("there is no option \"devicse\". Is \"devices\" meant?")));
  EXPECT_THAT(refusal_of("run.json", R"({"max_steps": 2})"), HasSubstr("Is \"max-steps\" meant?"));
  EXPECT_THAT(refusal_of("run.toml", "zzzzzzzzzzzz = 2\n"), HasSubstr("brigade train --help"));
  EXPECT_THAT(refusal_of("run.toml", "[plan]\ndevices = 2\n"), HasSubstr("there is no section [plan]"));
  EXPECT_THAT(refusal_of("run.toml", "config = \"other.toml\"\n"), HasSubstr("there is no option \"config\""));
}

TEST(ConfigFile, ValuesAreCheckedAsThoseOfFlags) {
  EXPECT_THAT(refusal_of("run.toml", "devices = 0\n"), AllOf(HasSubstr("run.toml"), HasSubstr("\"devices\"")));
  EXPECT_THAT(refusal_of("run.json", R"({"lr": "fast"})"), HasSubstr("\"lr\""));
  EXPECT_THAT(refusal_of("run.json", R"({"quiet": "perhaps"})"), HasSubstr("\"quiet\""));
  EXPECT_THAT(refusal_of("run.json", R"({"devices": [1, 2]})"), HasSubstr("\"devices\" is array"));
  EXPECT_THAT(refusal_of("run.json", "{"), HasSubstr("this is no JSON object"));
}

TEST(ConfigFile, MustBeThere) {
  EXPECT_THAT(refusal({"--config", "/nowhere/run.toml"}, 3), HasSubstr("/nowhere/run.toml: the file cannot be read"));
}

}  // namespace config_test
}  // namespace brigade
