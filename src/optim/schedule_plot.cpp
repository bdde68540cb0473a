#include "brigade/optim/schedule_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/schedule_errors.h"

namespace brigade::schedule {
namespace {

constexpr int kMinWidth = 24;  // the widest rate, its tick and a curve of a dozen characters
constexpr int kMinHeight = 4;
constexpr int kMaxSize = 1000;
constexpr std::int64_t kMaxRates = std::int64_t{1} << 20;
constexpr int kAxisLines = 2;  // below the curve
constexpr int kDotsAcross = 2;
constexpr int kDotsDown = 4;
constexpr std::string_view kStepLabel = "step";

void check_size(std::string_view name, int size, int least) {
  if (size < least || size > kMaxSize) refuse("the {} of a plot is {}: give {} to {}.", name, size, least, kMaxSize);
}

// Where the curve is: in lines 0 to rows - 1, in columns left to width - 1.
struct Frame {
  int left = 0;
  int width = 0;
  int rows = 0;

  int cells() const { return width - left; }
};

// Text line by line, a character a column; what was never written is blank.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), cells_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), U' ') {}

  char32_t& at(int column, int line) {
    return cells_[static_cast<std::size_t>(line) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(column)];
  }

  void write(int column, int line, std::string_view ascii) {
    for (const char c : ascii) at(column++, line) = static_cast<char32_t>(c);
  }

  // Whether `count` columns from `column` on are blank, and so is one on each side.
  bool is_free(int column, int line, int count) {
    for (int c = std::max(column - 1, 0); c < std::min(column + count + 1, width_); ++c) {
      if (at(c, line) != U' ') return false;
    }
    return true;
  }

  std::string text() const {
    std::string result;
    for (auto line = cells_.begin(); line != cells_.end(); line += width_) {
      auto end = line + width_;
      while (end != line && *(end - 1) == U' ') --end;
      for (auto cell = line; cell != end; ++cell) append_utf8(result, *cell);
      result += '\n';
    }
    return result;
  }

 private:
  static void append_utf8(std::string& text, char32_t c) {
    if (c < 0x80) {
      text += static_cast<char>(c);
      return;
    }
    // All others that a plot has lie between U+0800 and U+FFFF.
    text += static_cast<char>(0xE0 | (c >> 12));
    text += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }

  int width_;
  std::vector<char32_t> cells_;
};

// Steps of a plot, in order: all of them, or so many of them evenly spread, the first and the last included.
class Samples {
 public:
  explicit Samples(std::int64_t steps) : steps_(steps), count_(std::min(steps, kMaxRates)) {}

  std::int64_t count() const { return count_; }

  // i * (steps - 1) / (count - 1), without the product, which may be too large.
  std::int64_t step(std::int64_t i) const {
    if (steps_ == count_) return i;
    const std::int64_t gaps = count_ - 1;
    return (steps_ - 1) / gaps * i + (steps_ - 1) % gaps * i / gaps;
  }

  // The first of `parts` equal parts of the width in which sample i is seen.
  int part(std::int64_t i, int parts) const { return static_cast<int>(i * parts / count_); }

 private:
  std::int64_t steps_;
  std::int64_t count_;
};

// A column of dots shows the samples whose share of the width it overlaps.
std::span<const double> seen_in(int column, int columns, std::span<const double> rates) {
  const auto i = static_cast<std::size_t>(column);
  const auto n = static_cast<std::size_t>(columns);
  const std::size_t first = i * rates.size() / n;
  const std::size_t end = ((i + 1) * rates.size() + n - 1) / n;
  return rates.subspan(first, end - first);
}

// A dot `up` from the bottom of the curve, `across` from its left edge.
void set_dot(Canvas& canvas, const Frame& frame, int across, int up) {
  // Dots 1 to 3 and 7 of a braille character lie on its left, 4 to 6 and 8 on its right, from the top down.
  constexpr std::array<std::array<char32_t, kDotsDown>, kDotsAcross> kDots = {
      {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
  constexpr char32_t kNoDots = 0x2800;
  const int down = frame.rows * kDotsDown - 1 - up;
  char32_t& cell = canvas.at(frame.left + across / kDotsAcross, down / kDotsDown);
  if (cell == U' ') cell = kNoDots;
  cell |= kDots[static_cast<std::size_t>(across % kDotsAcross)][static_cast<std::size_t>(down % kDotsDown)];
}

void draw_curve(Canvas& canvas, const Frame& frame, std::span<const double> rates, double highest) {
  const auto height = [&](double rate) {
    return highest > 0 ? static_cast<int>(std::lround(rate / highest * (frame.rows * kDotsDown - 1))) : 0;
  };
  std::optional<int> before;  // where the column on the left ends, which this one is joined to
  const int columns = frame.cells() * kDotsAcross;
  for (int across = 0; across < columns; ++across) {
    const std::span<const double> seen = seen_in(across, columns, rates);
    const auto [least, most] = std::ranges::minmax(seen);
    int low = height(least);
    int high = height(most);
    if (before && *before < low) low = *before + 1;
    if (before && *before > high) high = *before - 1;
    for (int up = low; up <= high; ++up) set_dot(canvas, frame, across, up);
    before = height(seen.back());
  }
}

// The rates written on the left, from the top down, by their lines.
std::vector<std::pair<int, std::string>> rate_labels(int rows, double highest) {
  std::vector<std::pair<int, std::string>> labels;
  const auto add = [&](int row, double rate) { labels.emplace_back(row, fmt::format("{:.4g}", rate)); };
  if (highest > 0) {
    add(0, highest);
    if (rows >= 5 && rows % 2 == 1) add(rows / 2, highest / 2);  // else no line is in the middle
  }
  add(rows - 1, 0);
  return labels;
}

void draw_step_axis(Canvas& canvas, const Frame& frame, const Samples& samples) {
  const int below = frame.rows + 1;
  for (int column = frame.left; column < frame.width; ++column) canvas.at(column, frame.rows) = U'─';
  // The last step matters most, then the first; one in the middle where there is room.
  const std::int64_t last = samples.count() - 1;
  for (const std::int64_t i : {last, std::int64_t{0}, last / 2}) {
    const int tick = frame.left + samples.part(i, frame.cells());
    const std::string text = std::to_string(samples.step(i));
    const auto size = static_cast<int>(text.size());
    const int column = std::clamp(tick - (size - 1) / 2, 0, frame.width - size);
    if (!canvas.is_free(column, below, size)) continue;
    canvas.write(column, below, text);
    canvas.at(tick, frame.rows) = U'┬';
  }
  const int column = frame.left - 2 - static_cast<int>(kStepLabel.size());
  if (canvas.is_free(column, below, static_cast<int>(kStepLabel.size()))) canvas.write(column, below, kStepLabel);
}

}  // namespace

std::string plot(const LearningRate& rate, std::int64_t steps, PlotOptions options) {
  check_steps("the number of steps of a plot", steps);
  check_size("width", options.width, kMinWidth);
  check_size("height", options.height, kMinHeight);
  const Samples samples(steps);
  std::vector<double> rates;
  rates.reserve(static_cast<std::size_t>(samples.count()));
  for (std::int64_t i = 0; i < samples.count(); ++i) rates.push_back(rate(samples.step(i)));
  const double highest = std::ranges::max(rates);

  const int rows = options.height - kAxisLines;
  const auto labels = rate_labels(rows, highest);
  std::size_t widest = kStepLabel.size();
  for (const auto& [row, text] : labels) widest = std::max(widest, text.size());
  const Frame frame{.left = static_cast<int>(widest) + 2, .width = options.width, .rows = rows};

  Canvas canvas(options.width, options.height);
  for (int row = 0; row < rows; ++row) canvas.at(frame.left - 1, row) = U'│';
  for (const auto& [row, text] : labels) {
    canvas.write(frame.left - 2 - static_cast<int>(text.size()), row, text);
    canvas.at(frame.left - 1, row) = U'┤';
  }
  canvas.at(frame.left - 1, rows) = U'└';
  draw_step_axis(canvas, frame, samples);
  draw_curve(canvas, frame, rates, highest);
  return canvas.text();
}

}  // namespace brigade::schedule
