#include "gradient_measure.h"

#include "brigade/optim/block_sums.h"

namespace brigade::training {

GradientMeasure::GradientMeasure(const Layout& layout, const Flat& gradients)
    : layout_(layout), gradients_(gradients), sums_(layout.blocks()) {}

void GradientMeasure::sum(BlockRange range, double divisor) {
  const optim::Step step = {.divisor = divisor};
  for (const Part& part : layout_.parts(range)) {
    const std::span<double> own = std::span(sums_).subspan(part.first_block, optim::block_count(part.end - part.begin));
    with_elements(layout_, gradients_, part, [&](auto elements) {
      optim::sums_of_squares(std::span<const typename decltype(elements)::element_type>(elements), step, own);
    });
  }
}

double GradientMeasure::norm() const { return std::sqrt(optim::tree_sum(sums_)); }

std::optional<GradientMeasure::Place> GradientMeasure::first_non_finite() const {
  for (std::size_t segment = 0; segment < layout_.segments().size(); ++segment) {
    const auto element = with_elements(layout_, gradients_, whole(layout_, segment), [](auto elements) {
      return optim::first_non_finite(std::span<const typename decltype(elements)::element_type>(elements));
    });
    if (element) return Place{segment, *element};
  }
  return std::nullopt;
}

}  // namespace brigade::training
