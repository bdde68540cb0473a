#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "brigade/optim/block_sums.h"
#include "gradient_measure.h"
#include "snapshot.h"
#include "update.h"

namespace brigade::training {
namespace {

class RuleUpdate : public Update {
 public:
  RuleUpdate(const Layout& layout, const Flat& gradients, const optim::Rule& rule,
             const std::vector<optim::Group>& groups)
      : layout_(layout),
        gradients_(gradients),
        rule_(rule),
        settings_(settings_of(layout, rule, groups)),
        updates_(layout.segments().size()) {
    for (std::size_t i = 0; i < rule.state_names().size(); ++i) state_.emplace_back(layout);
    if (rule.layerwise()) sums_ = {std::vector<double>(layout.blocks()), std::vector<double>(layout.blocks())};
  }

  void apply(const Share& share, const Decision& decision) override {
    std::vector<Part> parts = layout_.parts(share.blocks);
    std::erase_if(parts, [&](const Part& part) { return !decision.used[part.segment]; });
    if (rule_.layerwise()) {
      for (const Part& part : parts) first_pass(share, part, decision);
      share.meet();  // the ratio of a tensor takes the sums of all of it
    }
    for (const Part& part : parts) {
      for_chunks(part, [&](const Part& chunk) {
        rule_.layerwise() ? second_pass(share, chunk, decision) : first_pass(share, chunk, decision);
        share.written(chunk);
      });
    }
  }

  std::vector<NamedFlat> buffers() const override {
    std::vector<NamedFlat> named;
    for (std::size_t i = 0; i < state_.size(); ++i) named.push_back({rule_.state_names()[i], &state_[i]});
    return named;
  }

  BlockRange written(std::size_t /*device*/, BlockRange blocks) const override { return blocks; }

  void conclude(const Decision& decision) override {
    for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i] += decision.used[i] ? 1 : 0;
  }

  // By the names of torch.optim: "exp_avg.fc1.weight". The first update of a parameter ignores what its buffers hold, so its
  // count is part of them.
  std::vector<NamedTensor> state() override {
    std::vector<NamedTensor> named;
    for (std::size_t segment = 0; segment < updates_.size(); ++segment) {
      const std::string& parameter = layout_.segments()[segment].name;
      for (std::size_t i = 0; i < state_.size(); ++i)
        named.push_back({fmt::format("{}.{}", rule_.state_names()[i], parameter), state_[i].view(segment)});
      named.push_back({fmt::format("update_count.{}", parameter), tensor_on(updates_[segment])});
    }
    return named;
  }

  std::string describe() const override { return rule_.describe(); }

 private:
  // Blocks that fit a core's cache together with their gradient and state.
  static constexpr std::size_t kChunkElements = 4 * optim::kBlockElements;

  template <class F>
  static void for_chunks(const Part& part, F f) {
    for (std::size_t begin = part.begin; begin < part.end; begin += kChunkElements) {
      f(Part{.segment = part.segment,
             .begin = begin,
             .end = std::min(begin + kChunkElements, part.end),
             .first_block = part.first_block + (begin - part.begin) / optim::kBlockElements});
    }
  }

  // Of one segment, from the groups.
  struct Settings {
    optim::Rule rule;
    double learning_rate;  // multiplies the schedule's
    bool trust_ratio;
  };

  static std::vector<Settings> settings_of(const Layout& layout, const optim::Rule& rule,
                                           const std::vector<optim::Group>& groups) {
    std::vector<optim::NamedShape> shapes;
    for (const Segment& segment : layout.segments()) shapes.push_back({segment.name, segment.sizes});
    std::vector<Settings> settings;
    for (const optim::ParameterSettings& one : optim::settings_of(groups, shapes)) {
      settings.push_back({.rule = one.weight_decay ? rule.with_weight_decay(*one.weight_decay) : rule,
                          .learning_rate = one.learning_rate,
                          .trust_ratio = one.trust_ratio == optim::TrustRatio::kOn});
    }
    return settings;
  }

  optim::Step step_of(std::size_t segment, const Decision& decision) const {
    return {.learning_rate = decision.learning_rate * settings_[segment].learning_rate,
            .index = updates_[segment],
            .divisor = decision.divisor,
            .clip_factor = decision.clip_factor,
            .clip_value = decision.clip_value};
  }

  // Calls f(slice) for a part of all buffers.
  template <class F>
  void with_slice(const Share& share, const Part& part, F f) const {
    with_elements(layout_, *share.parameters, part, [&](auto parameters) {
      using T = typename decltype(parameters)::element_type;
      const auto same_of = [&](const Flat& flat) {
        return std::span<T>(reinterpret_cast<T*>(flat.at(part.segment)) + part.begin, parameters.size());
      };
      std::array<std::span<T>, optim::kMaxStateBuffers> state;
      for (std::size_t i = 0; i < state_.size(); ++i) state[i] = same_of(state_[i]);
      f(optim::Slice<T>{.parameters = parameters,
                        .gradient = same_of(gradients_),
                        .state = std::span<const std::span<T>>(state).first(state_.size())});
    });
  }

  void first_pass(const Share& share, const Part& part, const Decision& decision) {
    const optim::Rule& rule = settings_[part.segment].rule;
    const optim::Step step = step_of(part.segment, decision);
    with_slice(share, part, [&](const auto& slice) {
      if (!rule.layerwise()) return rule.update(slice, step);
      const std::size_t blocks = optim::block_count(part.end - part.begin);
      rule.direct(slice, step,
                  {.parameters = std::span(sums_[0]).subspan(part.first_block, blocks),
                   .direction = std::span(sums_[1]).subspan(part.first_block, blocks)});
    });
  }

  void second_pass(const Share& share, const Part& part, const Decision& decision) {
    const Settings& settings = settings_[part.segment];
    const double ratio = settings.trust_ratio ? settings.rule.ratio(norm(0, part.segment), norm(1, part.segment)) : 1.0;
    with_slice(share, part,
               [&](const auto& slice) { settings.rule.apply(slice, step_of(part.segment, decision), ratio); });
  }

  double norm(std::size_t which, std::size_t segment) const {
    const Segment& one = layout_.segments()[segment];
    return std::sqrt(optim::tree_sum(std::span(sums_[which]).subspan(one.first_block, one.blocks)));
  }

  const Layout& layout_;
  const Flat& gradients_;
  optim::Rule rule_;
  std::vector<Settings> settings_;     // of each segment
  std::vector<std::int64_t> updates_;  // that each segment had
  std::vector<Flat> state_;
  std::array<std::vector<double>, 2> sums_;  // of squares by block: of parameters, and of directions
};

}  // namespace

std::unique_ptr<Update> update_by_rule(const Layout& layout, const Flat& gradients, const optim::Rule& rule,
                                       const std::vector<optim::Group>& groups) {
  return std::make_unique<RuleUpdate>(layout, gradients, rule, groups);
}

}  // namespace brigade::training
