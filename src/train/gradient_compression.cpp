#include "gradient_compression.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"
#include "snapshot.h"

namespace brigade::training {
namespace {

// Dropout folds steps into the same key, and there is no such step.
constexpr std::int64_t kStream = 0xFFFFFFFE;

comm::Codec codec_of(const Compression& options) {
  const bool adds = options.error_feedback == ErrorFeedback::kOn ||
                    (options.error_feedback == ErrorFeedback::kByCodec && options.codec.wants_error_feedback());
  return adds ? compress::error_feedback(options.codec) : options.codec;
}

// As it lies in memory: rows are what one index of the outermost dimension has, which for weights is an output, or an input.
comm::Matrix matrix_of(const Segment& segment) {
  std::size_t outermost = 0;
  for (std::size_t i = 1; i < segment.sizes.size(); ++i) {
    if (segment.strides[i] > segment.strides[outermost] || segment.sizes[outermost] == 1) outermost = i;
  }
  if (segment.elements == 0 || segment.sizes.size() < 2) return segment.elements;
  const auto rows = static_cast<std::size_t>(segment.sizes[outermost]);
  return {rows, segment.elements / rows};
}

std::span<float> numbers_in(const at::Tensor& dense) {
  return {dense.data_ptr<float>(), static_cast<std::size_t>(dense.numel())};
}

}  // namespace

GradientCompression::GradientCompression(const Layout& layout, const Compression& options, std::int64_t leaves,
                                         std::int64_t seed, std::source_location site)
    : layout_(layout),
      codec_(codec_of(options)),
      start_step_(options.start_step),
      stream_(random::fold_in(random::key(seed), kStream)),
      passages_(static_cast<std::size_t>(leaves) * layout.segments().size()) {
  if (start_step_ < 0) {
    throw InvalidArgument(
        fmt::format("DataParallel: compress.start_step is {}; give the number of a step, from 0", start_step_),
        {.site = site});
  }
  for (const Segment& segment : layout.segments()) {
    if (segment.dtype != at::kFloat) {
      throw InvalidArgument(
          fmt::format(
              "DataParallel: compress is for float32, and {} is float64: train in float32, or leave compress out",
              segment.name),
          {.site = site});
    }
    shapes_.push_back(matrix_of(segment));
  }
}

void GradientCompression::begin(std::int64_t step, double unit) {
  is_active_ = step >= start_step_;
  key_ = random::fold_in(stream_, step);
  unit_ = unit;
  for (Passage& passage : passages_) passage.is_written = false;
}

at::Tensor GradientCompression::passed(std::int64_t leaf, std::size_t parameter, at::Tensor gradient) {
  if (!is_active_ || !gradient.defined()) return gradient;
  const std::span<const float> sent = numbers_in(gradient);
  if (optim::first_non_finite(sent)) return gradient;

  Passage& own = at(leaf, parameter);
  const comm::Matrix shape = shapes_[parameter];
  own.carried.state.resize(codec_.state_size(shape));
  own.next.resize(own.carried.state.size());
  std::vector<std::byte> message(codec_.encoded_bytes(shape));
  codec_.encode(sent, shape,
                {.key = random::fold_in(random::fold_in(key_, leaf), static_cast<std::int64_t>(parameter)),
                 .state = own.carried.state,
                 .next_state = own.next,
                 .residual_scale = static_cast<float>(unit_ / own.carried.unit)},
                message);
  // Not into the gradient's own memory, which autograd may share with others.
  at::Tensor result = at::empty_like(gradient, at::MemoryFormat::Preserve);
  const std::span<float> received = numbers_in(result);
  codec_.decode(message, shape, received);

  // What was to be sent is what arrived and what was lost.
  std::vector<float> whole(sent.begin(), sent.end());
  for (std::size_t i = 0; i < codec_.residual_size(shape); ++i) whole[i] = received[i] + own.next[i];
  own.distortion = comm::distortion(whole, received);
  own.is_written = true;
  return result;
}

void GradientCompression::keep() {
  for (Passage& passage : passages_) {
    if (!passage.is_written) continue;
    std::swap(passage.carried.state, passage.next);
    passage.carried.unit = unit_;
  }
}

std::optional<CompressionReport> GradientCompression::report() const {
  if (!is_active_) return std::nullopt;
  CompressionReport report;
  std::vector<double> norms(passages_.size());
  std::vector<double> errors(passages_.size());
  for (std::size_t i = 0; i < passages_.size(); ++i) {
    if (!passages_[i].is_written) continue;
    const std::size_t parameter = i % shapes_.size();
    report.wire_bytes += static_cast<std::int64_t>(codec_.encoded_bytes(shapes_[parameter]));
    report.uncompressed_bytes += static_cast<std::int64_t>(layout_.segments()[parameter].bytes);
    norms[i] = passages_[i].distortion.squared_norm;
    errors[i] = passages_[i].distortion.squared_error;
  }
  report.relative_error =
      comm::Distortion{.squared_norm = optim::tree_sum(norms), .squared_error = optim::tree_sum(errors)}.relative();
  return report;
}

std::vector<NamedTensor> GradientCompression::state() {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < passages_.size(); ++i) {
    const std::size_t parameter = i % shapes_.size();
    const std::size_t count = codec_.state_size(shapes_[parameter]);
    if (count == 0) continue;
    auto& [numbers, unit] = passages_[i].carried;
    numbers.resize(count);
    const std::string name = fmt::format("{}.{}", i / shapes_.size(), layout_.segments()[parameter].name);
    named.push_back({"residual." + name,
                     at::from_blob(numbers.data(), {static_cast<std::int64_t>(count)}, at::TensorOptions(at::kFloat))});
    named.push_back({"residual_unit." + name, tensor_on(unit)});
  }
  return named;
}

std::string GradientCompression::describe() const {
  return fmt::format("gradients as {}{}", codec_.describe(),
                     start_step_ > 0 ? fmt::format(" from step {} on", start_step_) : "");
}

}  // namespace brigade::training
