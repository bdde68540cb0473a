#include "guard/manifest.h"

#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::guard {
namespace manifest_test {

const Manifest kManifest = {
    .step = 42,
    .files = {FileRecord{.bytes = 1336, .digest = 0x0f3b}, {.bytes = 8, .digest = ~0ull}, {.bytes = 0, .digest = 0}}};

constexpr const char* kText = R"({
  "files": {
    "model.safetensors": {
      "bytes": 1336,
      "xxh3": "0000000000000f3b"
    },
    "optimizer.safetensors": {
      "bytes": 8,
      "xxh3": "ffffffffffffffff"
    },
    "state.json": {
      "bytes": 0,
      "xxh3": "0000000000000000"
    }
  },
  "format": 1,
  "step": 42
}
)";

TEST(Manifest, IsJsonThatPeopleCanRead) {
  EXPECT_EQ(to_text(kManifest), kText);
  EXPECT_EQ(parse_manifest("m", kText), kManifest);
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, AnythingElseThanWhatIsWrittenIsRefused) {
  for (const std::string& text : std::vector{
           std::string(), std::string("{}"), std::string("["), std::string("null"), std::string("\"\xff\""),
           with("1336", "-1"), with("1336", "1336.0"), with("1336", "01336"), with("1336", "99999999999999999999"),
           with("0f3b", "0F3B"), with("0f3b", "0f3g"), with("0000000000000f3b", "f3b"),
           with("0000000000000f3b", "\\u0030000000000000f3b"), with("model.safetensors", "../model.safetensors"),
           with("42", "42 "), with("\"step\"", "\"step\": 1, \"step\""), with("\"format\"", "\"extra\": 0, \"format\""),
           with("\"bytes\": 8", "\"bytes\": \"8\""), kText + std::string("\n")}) {
    expect_error<DataError>([&] { parse_manifest("the file", text); }, {"the file: ", "damaged"});
  }
}

TEST(Manifest, OneOfALaterFormatSaysSo) {
  expect_error<DataError>([&] { parse_manifest("m", with("\"format\": 1", "\"format\": 2")); },
                          {"has format 2", "Use a newer version"});
}

TEST(Manifest, OneThatIsTooLongIsNotParsed) {
  expect_error<DataError>([&] { parse_manifest("m", kText + std::string(kMaxManifestBytes, ' ')); },
                          {"where a manifest takes"});
}

TEST(StepFolder, IsNamedByItsStepAndNothingElseIs) {
  EXPECT_EQ(folder_of(0), "step-00000000");
  EXPECT_EQ(folder_of(42), "step-00000042");
  EXPECT_EQ(folder_of(1'234'567'890'123), "step-1234567890123");
  for (const std::int64_t step :
       {std::int64_t{0}, std::int64_t{42}, std::int64_t{99'999'999}, std::int64_t{100'000'000}, INT64_MAX})
    EXPECT_EQ(step_of(folder_of(step)), step);
  for (const std::string name :
       {"", "step-", "step-42", "step-000000042", "step--0000042", "step-+0000042", "step-0000004x", "Step-00000042",
        "step-00000042 ", ".step-00000042", "step-99999999999999999999"})
    EXPECT_EQ(step_of(name), std::nullopt) << name;
}

}  // namespace manifest_test
}  // namespace brigade::guard
