#include "brigade/optim/groups.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "optim/glob.h"
#include "support/errors.h"

namespace brigade::optim {
namespace groups_test {

struct Model {
  std::vector<std::string> names = {"encoder.0.weight", "encoder.0.bias", "encoder.norm.weight", "head[0].weight",
                                    "head[0].bias"};
  std::vector<std::vector<std::int64_t>> shapes = {{8, 4}, {8}, {8}, {8, 3, 2}, {}};

  std::vector<ParameterSettings> settings(const std::vector<Group>& groups) const {
    std::vector<NamedShape> parameters;
    for (std::size_t i = 0; i < names.size(); ++i) parameters.push_back({.name = names[i], .shape = shapes[i]});
    return settings_of(groups, parameters);
  }
  std::vector<double> learning_rates(const std::vector<Group>& groups) const {
    std::vector<double> rates;
    for (const ParameterSettings& s : settings(groups)) rates.push_back(s.learning_rate);
    return rates;
  }
};

TEST(Groups, LeaveOtherParametersToTheRule) {
  for (const ParameterSettings& settings : Model().settings({})) {
    EXPECT_EQ(settings.learning_rate, 1);
    EXPECT_EQ(settings.weight_decay, std::nullopt);
    EXPECT_EQ(settings.trust_ratio, TrustRatio::kOn);
  }
}

TEST(Groups, TakeParametersByPattern) {
  const Model model;
  EXPECT_EQ(model.learning_rates({{.names = {"encoder.*"}, .learning_rate = 0.1}}),
            (std::vector{0.1, 0.1, 0.1, 1.0, 1.0}));
  EXPECT_EQ(model.learning_rates({{.names = {"*.bias", "head*"}, .learning_rate = 0.1}}),
            (std::vector{1.0, 0.1, 1.0, 0.1, 0.1}));
  EXPECT_EQ(model.learning_rates({{.names = {"head[0].weight"}, .learning_rate = 0}}),
            (std::vector{1.0, 1.0, 1.0, 0.0, 1.0}));
}

TEST(Groups, TakeParametersByPredicate) {
  const auto is_long = [](std::string_view name, std::span<const std::int64_t>) { return name.size() > 15; };
  const auto has_three = [](std::string_view, std::span<const std::int64_t> shape) { return shape.size() == 3; };
  EXPECT_EQ(Model().learning_rates({{.where = is_long, .learning_rate = 0.1}}), (std::vector{0.1, 1.0, 0.1, 1.0, 1.0}));
  EXPECT_EQ(Model().learning_rates({{.where = has_three, .learning_rate = 2}}), (std::vector{1.0, 1.0, 1.0, 2.0, 1.0}));
  EXPECT_EQ(Model().learning_rates({{.names = {"*norm*", "*bias"}, .where = is_long, .learning_rate = 2}}),
            (std::vector{1.0, 1.0, 2.0, 1.0, 1.0}));
}

TEST(Groups, LetTheLaterWinInWhatItSets) {
  const auto settings = Model().settings({
      {.names = {"*"}, .learning_rate = 0.5, .weight_decay = 0.2},
      exempt_biases_and_norms(),
      {.names = {"*norm*"}, .learning_rate = 3, .trust_ratio = TrustRatio::kOn},
  });
  EXPECT_EQ(settings[0].learning_rate, 0.5);
  EXPECT_EQ(settings[0].weight_decay, 0.2);
  EXPECT_EQ(settings[1].learning_rate, 0.5);
  EXPECT_EQ(settings[1].weight_decay, 0);
  EXPECT_EQ(settings[1].trust_ratio, TrustRatio::kOff);
  EXPECT_EQ(settings[2].learning_rate, 3);
  EXPECT_EQ(settings[2].weight_decay, 0);
  EXPECT_EQ(settings[2].trust_ratio, TrustRatio::kOn);
}

TEST(Groups, ExemptTensorsOfFewerThanTwoDimensions) {
  const auto settings = Model().settings({exempt_biases_and_norms()});
  const std::vector<bool> exempt = {false, true, true, false, true};
  for (std::size_t i = 0; i < exempt.size(); ++i) {
    EXPECT_EQ(settings[i].weight_decay == 0.0, exempt[i]) << i;
    EXPECT_EQ(settings[i].weight_decay == std::nullopt, !exempt[i]) << i;
    EXPECT_EQ(settings[i].trust_ratio == TrustRatio::kOff, exempt[i]) << i;
    EXPECT_EQ(settings[i].learning_rate, 1) << i;
  }
}

TEST(Groups, NameAPatternThatMatchesNothingAndTheNearestName) {
  EXPECT_ERROR(
      Model().settings({{.names = {"*"}}, {.names = {"encoder.*", "encodr.nrm*"}}}), InvalidArgument,
      "parameter group 2: no parameter's name matches \"encodr.nrm*\"; the nearest is \"encoder.norm.weight\".");
  EXPECT_ERROR(Model().settings({{.names = {"head.weight"}}}), InvalidArgument, "the nearest is \"head[0].weight\"");
  EXPECT_ERROR(settings_of(std::vector<Group>{{.names = {"*"}}}, {}), InvalidArgument, "there are no parameters");
}

TEST(Groups, RefuseWhatCannotBe) {
  EXPECT_ERROR(Model().settings({{.learning_rate = 1}}), InvalidArgument, "parameter group 1 chooses no parameters");
  EXPECT_ERROR(Model().settings({{.names = {"*"}, .learning_rate = -1}}), InvalidArgument, "learning_rate is -1");
  EXPECT_ERROR(Model().settings({{.names = {"*"}, .weight_decay = std::numeric_limits<double>::quiet_NaN()}}),
               InvalidArgument, "weight_decay is nan");
}

TEST(Glob, CountsTheEditsThatAreMissing) {
  for (const auto& [pattern, name] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                      {"*", ""},
                                                                                      {"*", "a.b"},
                                                                                      {"**", "a"},
                                                                                      {"?", "a"},
                                                                                      {"a*c", "ac"},
                                                                                      {"a*c", "abcbc"},
                                                                                      {"[a]", "[a]"},
                                                                                      {"*.*.w", "a.b.c.w"},
                                                                                      {"a?c*", "abc"}}) {
    EXPECT_EQ(edits_to_match(pattern, name), 0u) << pattern << " on " << name;
  }
  EXPECT_EQ(edits_to_match("?", ""), 1u);
  EXPECT_EQ(edits_to_match("", "ab"), 2u);
  EXPECT_EQ(edits_to_match("abc", "abd"), 1u);
  EXPECT_EQ(edits_to_match("abc", "ac"), 1u);
  EXPECT_EQ(edits_to_match("ac", "abc"), 1u);
  EXPECT_EQ(edits_to_match("[ab]", "a"), 3u);
  EXPECT_EQ(edits_to_match("enc*.bias", "encoder.0.weight"), 5u);
  EXPECT_EQ(edits_to_match("*c", "ab"), 1u);
}

}  // namespace groups_test
}  // namespace brigade::optim
