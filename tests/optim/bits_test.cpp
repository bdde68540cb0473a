// The bits of every rule: those of a plain loop, on every instruction set, wherever a tensor is cut.
#include <gtest/gtest.h>

#include "optim/rules.h"

namespace brigade::optim::testing {
namespace bits_test {

template <class T>
class RuleBits : public ::testing::Test {};
using Dtypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RuleBits, Dtypes);

TYPED_TEST(RuleBits, AreThoseOfAPlainLoopOnEveryInstructionSet) {
  for (const RuleCase& rule_case : rule_cases()) {
    for (const std::size_t count : {0, 1, 3, 16, 1003, 9000}) {
      const auto expected = updated_in_a_loop<TypeParam>(rule_case, count, 4);
      on_every_target([&](const char* target) {
        EXPECT_TRUE(same_bits(updated<TypeParam>(rule_case.rule, count, 4), expected))
            << rule_case.rule.describe() << " on " << target << ", " << count << " elements";
      });
    }
  }
}

TYPED_TEST(RuleBits, DoNotDependOnWhereATensorIsCut) {
  constexpr std::size_t kCount = 5 * 4096 + 77;
  for (const RuleCase& rule_case : rule_cases()) {
    const auto whole = updated<TypeParam>(rule_case.rule, kCount, 3);
    for (const std::vector<std::size_t>& cuts :
         std::vector<std::vector<std::size_t>>{{4096}, {5 * 4096}, {4096, 2 * 4096, 4 * 4096}, {2 * 4096, 2 * 4096}}) {
      EXPECT_TRUE(same_bits(updated<TypeParam>(rule_case.rule, kCount, 3, cuts), whole))
          << rule_case.rule.describe() << ", cut at " << ::testing::PrintToString(cuts);
    }
  }
}

TYPED_TEST(RuleBits, OfElementwiseRulesDoNotDependOnCutsAnywhere) {
  for (const RuleCase& rule_case : rule_cases()) {
    if (rule_case.rule.layerwise()) continue;
    const auto whole = updated<TypeParam>(rule_case.rule, 200, 3);
    for (std::size_t cut = 1; cut < 200; cut += 7) {
      EXPECT_TRUE(same_bits(updated<TypeParam>(rule_case.rule, 200, 3, {cut}), whole))
          << rule_case.rule.describe() << ", cut at " << cut;
    }
  }
}

}  // namespace bits_test
}  // namespace brigade::optim::testing
