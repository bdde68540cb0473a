// Every draw that JAX recorded in jax/random.json. Parameters come from the file, so one made from another seed serves
// too.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "brigade/random/distributions.h"
#include "brigade/random/initializers.h"
#include "brigade/random/key.h"
#include "brigade/random/permutation.h"
#include "support/cases.h"

namespace brigade::random {
namespace recorded_test {

using nlohmann::json;
using Shape = std::vector<std::int64_t>;

enum class Match { kExact, kClose };

struct Operation {
  Match match;
  std::function<at::Tensor(Key key, const json& args)> draw;
};

at::Tensor words_of(const std::vector<Key>& keys) {
  at::Tensor words = at::empty({static_cast<std::int64_t>(keys.size()), 2}, at::kInt);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    words.data_ptr<int>()[2 * i] = static_cast<int>(keys[i].k0);
    words.data_ptr<int>()[2 * i + 1] = static_cast<int>(keys[i].k1);
  }
  return words;
}

Shape shape_of(const json& args) { return args.at("shape").get<Shape>(); }
double number(const json& args, const char* name) { return args.at(name).get<double>(); }
std::int64_t integer(const json& args, const char* name) { return args.at(name).get<std::int64_t>(); }

at::Tensor samples_of_bits(Key key, const json& args) {
  const at::Tensor all = bits(key, {integer(args, "n")});
  std::uint32_t folded = 0;
  for (std::int64_t i = 0; i < all.numel(); ++i) folded ^= static_cast<std::uint32_t>(all.data_ptr<int>()[i]);
  EXPECT_EQ(folded, args.at("xor").get<std::uint32_t>());
  return all.index_select(0, at::tensor(args.at("at").get<Shape>(), at::kLong));
}

at::Tensor categories(Key key, const json& args) {
  const auto logits = args.at("logits").get<std::vector<double>>();
  return categorical(key, at::tensor(logits, at::kFloat), shape_of(args));
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> kOperations = {
      {"key", {Match::kExact, [](Key k, const json&) { return words_of({k})[0]; }}},
      {"split", {Match::kExact, [](Key k, const json& a) { return words_of(split(k, integer(a, "n"))); }}},
      {"fold_in", {Match::kExact, [](Key k, const json& a) { return words_of({fold_in(k, integer(a, "data"))})[0]; }}},
      {"bits8", {Match::kExact, [](Key k, const json& a) { return bits(k, shape_of(a), 8); }}},
      {"bits16", {Match::kExact, [](Key k, const json& a) { return bits(k, shape_of(a), 16); }}},
      {"bits32", {Match::kExact, [](Key k, const json& a) { return bits(k, shape_of(a), 32); }}},
      {"bits64", {Match::kExact, [](Key k, const json& a) { return bits(k, shape_of(a), 64); }}},
      {"bits32_at", {Match::kExact, samples_of_bits}},
      {"uniform",
       {Match::kExact,
        [](Key k, const json& a) { return uniform(k, shape_of(a), number(a, "low"), number(a, "high")); }}},
      {"uniform64",
       {Match::kExact,
        [](Key k, const json& a) {
          return uniform(k, shape_of(a), number(a, "low"), number(a, "high"), at::kDouble);
        }}},
      {"randint",
       {Match::kExact,
        [](Key k, const json& a) { return randint(k, shape_of(a), integer(a, "low"), integer(a, "high")); }}},
      {"bernoulli", {Match::kExact, [](Key k, const json& a) { return bernoulli(k, number(a, "p"), shape_of(a)); }}},
      {"permutation", {Match::kExact, [](Key k, const json& a) { return permutation(k, integer(a, "n")); }}},
      {"categorical", {Match::kExact, categories}},
      {"normal", {Match::kClose, [](Key k, const json& a) { return normal(k, shape_of(a)); }}},
      {"truncated_normal",
       {Match::kClose,
        [](Key k, const json& a) { return truncated_normal(k, number(a, "low"), number(a, "high"), shape_of(a)); }}},
      {"exponential", {Match::kClose, [](Key k, const json& a) { return exponential(k, shape_of(a)); }}},
      {"gumbel", {Match::kClose, [](Key k, const json& a) { return gumbel(k, shape_of(a)); }}},
      {"glorot_uniform", {Match::kClose, [](Key k, const json& a) { return glorot_uniform(k, shape_of(a)); }}},
      {"he_normal", {Match::kClose, [](Key k, const json& a) { return he_normal(k, shape_of(a)); }}},
      {"lecun_normal", {Match::kClose, [](Key k, const json& a) { return lecun_normal(k, shape_of(a)); }}},
  };
  return kOperations;
}

void expect_match(const at::Tensor& ours, const at::Tensor& recorded, Match match) {
  ASSERT_EQ(ours.sizes(), recorded.sizes());
  if (match == Match::kExact) {
    // Indices are int64 here and int32 in JAX; all other types are equal.
    const bool is_index = ours.scalar_type() == at::kLong && recorded.scalar_type() == at::kInt;
    ASSERT_TRUE(is_index || ours.scalar_type() == recorded.scalar_type());
    EXPECT_TRUE(at::equal(ours, recorded.to(ours.scalar_type()))) << ours << "\nrecorded\n" << recorded;
    return;
  }
  ASSERT_EQ(ours.scalar_type(), recorded.scalar_type());
  const at::Tensor exact = recorded.to(at::kDouble);
  const at::Tensor excess = (ours.to(at::kDouble) - exact).abs() - (5e-7 + 2e-6 * exact.abs());
  EXPECT_LE(excess.max().item<double>(), 0.0) << ours << "\nrecorded\n" << recorded;
}

TEST(RecordedDraws, AreThoseOfJax) {
  const json cases = cases::load("jax/random.json").at("cases");
  ASSERT_FALSE(cases.empty());
  std::set<std::string> seen;
  for (const json& recorded : cases) {
    const auto name = recorded.at("op").get<std::string>();
    const json& args = recorded.at("args");
    SCOPED_TRACE(name + " of key " + recorded.at("key_seed").dump() + " with " + args.dump());
    const auto operation = operations().find(name);
    ASSERT_NE(operation, operations().end()) << "unknown operation";
    const at::Tensor ours = operation->second.draw(key(integer(recorded, "key_seed")), args);
    expect_match(ours, cases::tensor_of(recorded.at("value")), operation->second.match);
    seen.insert(name);
  }
  for (const auto& [name, operation] : operations()) EXPECT_TRUE(seen.contains(name)) << "no case of " << name;
}

}  // namespace recorded_test
}  // namespace brigade::random
