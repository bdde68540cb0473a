#include "comm/compress/orthonormal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace brigade::comm {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// What is left of a column that depends on others is the rounding of the float32 sums that it came of, about 1e-6 of it. Ten times as
// much tells one from the other, and a direction that is so much weaker than another is not missed.
constexpr double kDependent = 1e-5;

}  // namespace

bool normalise(std::span<float> column) {
  double squares = 0;
  for (const float x : column) squares += static_cast<double>(x) * static_cast<double>(x);
  if (squares == 0 || !std::isfinite(squares)) return false;
  const double length = std::sqrt(squares);
  for (float& x : column) x = static_cast<float>(static_cast<double>(x) / length);
  return true;
}

void make_orthonormal(std::span<float> columns, std::size_t rows) {
  if (!std::all_of(columns.begin(), columns.end(), [](float x) { return std::isfinite(x); })) {
    std::fill(columns.begin(), columns.end(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  std::vector<double> all(columns.begin(), columns.end());
  for (std::size_t begin = 0; begin < all.size(); begin += rows) {
    const std::span<double> own = std::span(all).subspan(begin, rows);
    const double before = std::sqrt(dot(own, own));
    // Twice is enough: what the first pass left of the others, because it rounded, the second takes away (L. Giraud, J. Langou,
    // M. Rozloznik, "The loss of orthogonality in the Gram-Schmidt orthogonalization process", 2005).
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t other = 0; other < begin; other += rows) {
        const std::span<const double> direction = std::span(all).subspan(other, rows);
        const double part = dot(own, direction);
        for (std::size_t i = 0; i < rows; ++i) own[i] -= part * direction[i];
      }
    }
    const double left = std::sqrt(dot(own, own));
    const bool is_new = left > kDependent * before;
    for (double& x : own) x = is_new ? x / left : 0.0;
  }
  std::transform(all.begin(), all.end(), columns.begin(), [](double x) { return static_cast<float>(x); });
}

}  // namespace brigade::comm
