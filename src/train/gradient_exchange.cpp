#include "gradient_exchange.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"
#include "memory.h"

namespace brigade::training {
namespace {

// In the parameter's own order of elements, as the flat buffer has it.
at::Tensor like(const Segment& segment, const at::Tensor& gradient) {
  if (gradient.strides() == at::IntArrayRef(segment.strides)) return gradient;
  at::Tensor own = at::empty_strided(segment.sizes, segment.strides, gradient.options());
  return own.copy_(gradient);
}

}  // namespace

// What travels, alive until it has arrived.
struct GradientExchange::Bucket {
  std::string tag = {};
  std::vector<std::int32_t> leaves = {};                 // of each addend
  std::vector<std::span<const std::byte>> addends = {};  // parameter by parameter
  std::vector<comm::Piece> pieces = {};
  std::optional<comm::Pending> pending = {};  // gone before what it reads
};

GradientExchange::GradientExchange(const Layout& layout, const Flat& result, comm::Group& group,
                                   GradientCompression* compression)
    : layout_(layout),
      result_(result),
      group_(group),
      compression_(compression),
      parameters_(layout.segments().size()) {}

GradientExchange::~GradientExchange() = default;

void GradientExchange::begin(const Buckets& buckets, LeafRange leaves, Extent extent, Overlap overlap,
                             std::source_location site) {
  started_.clear();
  buckets_ = &buckets;
  leaves_ = leaves;
  extent_ = extent;
  overlap_ = extent == Extent::kPart ? Overlap::kOff : overlap;
  site_ = site;
  for (Parameter& parameter : parameters_) {
    parameter.sums.clear();
    parameter.next_leaf = leaves.begin;
    parameter.any = false;
  }
  arriving_.assign(static_cast<std::size_t>(leaves.size()) * parameters_.size(), {});
  memories_.resize(static_cast<std::size_t>(leaves.size()));
  for (auto& memories : memories_) memories.clear();
  order_.clear();
  squares_.clear();
  missing_.clear();
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) missing_.push_back(buckets[bucket].size());
}

void GradientExchange::keep_part() {
  for (Parameter& parameter : parameters_) {
    parameter.any_kept = parameter.any_kept || parameter.any;
    if (parameter.sums.parts().empty()) continue;
    parameter.sums.fold();
    const at::Tensor& sum = parameter.sums.parts().front().sum;
    if (parameter.kept.defined()) {
      add_in_place(parameter.kept, sum);
    } else {
      // Who else holds it may write into it until the step ends.
      parameter.kept = sum.storage().use_count() > 1 ? sum.clone() : sum;
    }
    parameter.sums.clear();
  }
}

void GradientExchange::drop_parts() noexcept {
  for (Parameter& parameter : parameters_) {
    parameter.kept.reset();
    parameter.any_kept = false;
  }
}

void GradientExchange::arrived(std::int64_t leaf, std::size_t parameter, at::Tensor gradient) {
  const Segment& segment = layout_.segments()[parameter];
  Arriving& own = at(leaf, parameter);
  if (gradient.layout() != at::kStrided) {
    throw InvalidArgument(fmt::format("the gradient of {} is {}; give its layer dense gradients (sparse = false)",
                                      segment.name, c10::str(gradient.layout())));
  }
  ++own.arrivals;
  if (own.complete) {
    parameters_[parameter].expected = own.arrivals;
    throw InvalidArgument(fmt::format(
        "{} got a gradient {} times in this backward and fewer times in the one before, so its reduction had begun. "
        "Nothing "
        "was changed, and the next step waits for as many. Where the number varies from step to step, set .overlap = "
        "Overlap::kOff",
        segment.name, own.arrivals));
  }
  if (own.gradient.defined()) {
    // Not in place: what is left of backward may still read it.
    own.gradient = like(segment, own.gradient + gradient);
  } else {
    own.gradient = like(segment, gradient);
    // Sums are taken in place, and gradients of parameters that are used through views may share their memory.
    if (!memories_of(leaf).insert(own.gradient.storage().unsafeGetStorageImpl()).second)
      own.gradient = own.gradient.clone();
  }
  if (overlap_ == Overlap::kOn && own.arrivals == parameters_[parameter].expected) complete(leaf, parameter);
}

void GradientExchange::end_leaf(std::int64_t leaf) {
  for (std::size_t parameter = parameters_.size(); parameter-- > 0;) {
    const Arriving& own = at(leaf, parameter);
    if (own.arrivals > 0 && extent_ != Extent::kPart) parameters_[parameter].expected = own.arrivals;
    if (!own.complete) complete(leaf, parameter);
  }
}

void GradientExchange::complete(std::int64_t leaf, std::size_t parameter) {
  Arriving& own = at(leaf, parameter);
  Parameter& all = parameters_[parameter];
  own.complete = true;
  all.any = all.any || own.gradient.defined();
  if (compression_ != nullptr) own.gradient = compression_->passed(leaf, parameter, std::move(own.gradient));
  if (!own.gradient.defined()) {
    // Zeros are added and not skipped: -0 + 0 is 0.
    const Segment& segment = layout_.segments()[parameter];
    own.gradient = at::empty_strided(segment.sizes, segment.strides, at::TensorOptions(segment.dtype)).zero_();
  }
  if (leaf + 1 == leaves_.end) order_.push_back(parameter);
  if (!squares_.empty()) measure(leaf, parameter);
  // Leaves that meet in forward run by turns, so one may be ahead of another before it.
  while (all.next_leaf < leaves_.end && at(all.next_leaf, parameter).complete) {
    all.sums.add(all.next_leaf, std::move(at(all.next_leaf, parameter).gradient));
    ++all.next_leaf;
  }
  if (all.next_leaf == leaves_.end) is_ready(parameter);
}

void GradientExchange::measure_leaves() { squares_.assign(arriving_.size(), 0.0); }

double GradientExchange::squared_norm(std::int64_t leaf) const {
  const std::size_t first = static_cast<std::size_t>(leaf - leaves_.begin) * parameters_.size();
  return optim::tree_sum(std::span(squares_).subspan(first, parameters_.size()));
}

void GradientExchange::measure(std::int64_t leaf, std::size_t parameter) {
  const at::Tensor& gradient = at(leaf, parameter).gradient;
  std::vector<double> sums(layout_.segments()[parameter].blocks);
  const auto count = static_cast<std::size_t>(gradient.numel());
  if (gradient.scalar_type() == at::kDouble) {
    optim::sums_of_squares(std::span<const double>(gradient.data_ptr<double>(), count), sums);
  } else {
    optim::sums_of_squares(std::span<const float>(gradient.data_ptr<float>(), count), sums);
  }
  squares_[static_cast<std::size_t>(leaf - leaves_.begin) * parameters_.size() + parameter] = optim::tree_sum(sums);
}

// What is kept stays as it is, in case the step fails.
void GradientExchange::add_kept(Parameter& parameter) const {
  parameter.sums.fold();
  if (!parameter.kept.defined()) return;
  if (parameter.sums.parts().empty()) {
    parameter.sums.add(0, parameter.kept);
  } else {
    add_in_place(parameter.sums.parts().front().sum, parameter.kept);
  }
}

void GradientExchange::is_ready(std::size_t parameter) {
  if (extent_ == Extent::kPart) return;
  if (extent_ == Extent::kRest) add_kept(parameters_[parameter]);
  --missing_[buckets_->of(parameter)];
  start_ready_buckets();
}

void GradientExchange::start_ready_buckets() {
  while (started_.size() < buckets_->size() && missing_[started_.size()] == 0) start(started_.size());
}

void GradientExchange::start(std::size_t bucket) {
  const std::vector<std::size_t>& members = (*buckets_)[bucket];
  Bucket& own = *started_.emplace_back(std::make_unique<Bucket>());
  own.tag = fmt::format("gradients, bucket {}", bucket);
  // All parameters are summed over the same leaves.
  for (const LeafSums::Part& part : parts(members.front()))
    own.leaves.push_back(extent_ == Extent::kRest ? 1 : part.count);
  own.addends.reserve(own.leaves.size() * members.size());
  for (const std::size_t parameter : members) {
    const Segment& segment = layout_.segments()[parameter];
    const std::size_t first = own.addends.size();
    for (const LeafSums::Part& part : parts(parameter)) own.addends.push_back(bytes_of(part.sum));
    own.pieces.push_back({.dtype = dtype_of(segment.dtype),
                          .out = {result_.at(parameter), segment.bytes},
                          .addends = std::span(own.addends).subspan(first),
                          .shape = segment.sizes});
  }
  own.pending.emplace(group_.start({.operation = comm::Operation::kReduce,
                                    .pieces = own.pieces,
                                    .leaves = std::span<const std::int32_t>(own.leaves)},
                                   {.tag = own.tag, .site = site_}));
}

void GradientExchange::finish() {
  if (leaves_.size() == 0) {
    for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) is_ready(parameter);
  }
  for (const std::unique_ptr<Bucket>& bucket : started_) bucket->pending->wait();
}

}  // namespace brigade::training
