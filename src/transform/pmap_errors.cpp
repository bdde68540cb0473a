#include "brigade/transform/pmap_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace brigade::detail {
namespace {

// What to do about an argument of another size than the `devices` that were asked for.
std::string advice_for_rows(const std::string& argument, std::int64_t rows, std::int64_t devices) {
  if (rows % devices == 0) {
    return fmt::format("\nTo split {} rows of {} over {} devices, reshape them to ({}, {}, ...).", rows, argument,
                       devices, devices, rows / devices);
  }
  return fmt::format(
      "\n{} devices do not divide the {} rows of {}: pad_and_mask(..., {}) pads them to {} and says which are real; or "
      "leave {} out.",
      devices, rows, argument, devices, (rows / devices + 1) * devices, rows % devices);
}

}  // namespace

std::int64_t mapped_dim(const at::Tensor& tensor, int axis, c10::function_ref<ErrorContext()> context) {
  const std::int64_t rank = tensor.dim();
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        fmt::format(
            "a tensor of shape {} has no axis {} to map: give it that dimension, choose another in in_axes, or none to "
            "pass it whole",
            c10::str(tensor.sizes()), axis),
        context());
  }
  return axis < 0 ? axis + rank : axis;
}

void throw_sizes_disagree(std::int64_t expected, std::optional<std::string_view> expected_from,
                          const std::vector<SizeClaim>& claims, const std::string& axis, std::source_location site) {
  std::string text = fmt::format("the mapped arguments do not all have size {} ({}) along their mapped axis:", expected,
                                 expected_from.value_or("as the first of them"));
  // Rows are split over so many devices because an option says so, or a Sharded is on them.
  const bool is_given = expected_from || std::any_of(claims.begin(), claims.end(), [&](const SizeClaim& claim) {
                          return claim.kind == SizeClaim::Kind::kSharded && claim.size == expected;
                        });
  std::string advice;
  for (const auto& [argument, shape, size, kind] : claims) {
    text +=
        fmt::format("\n  {}: {}, {}", argument, shape,
                    size ? fmt::format("size {}{}", *size, *size == expected ? "" : "  <-- differs") : "not mapped");
    if (!advice.empty() || !size || *size == expected) continue;
    if (kind == SizeClaim::Kind::kSharded) {
      advice = fmt::format("\nA Sharded is mapped as it is: make {} on {} devices.", argument, expected);
    } else if (kind == SizeClaim::Kind::kRows && is_given && *size > expected) {
      advice = advice_for_rows(argument, *size, expected);
    }
  }
  throw ShapeError(text + advice + "\n", {.axis = axis, .site = site});
}

void throw_trespass(const Input& input, int position, const ErrorContext& context) {
  const char* why = "is the caller's: its values have changed for whoever holds it";
  const char* advice = "Clone it first, or pass the argument with std::move and keep no other handle";
  if (input.is_whole()) {
    why = "all devices share, as in_axes is none";
    advice = "Clone it first, or give every device a copy with replicate()";
  } else if (input.given_up()) {
    why =
        "was passed with std::move, but is not the only way to its memory: there is another handle, view or graph of "
        "it, or it was not allocated by libtorch";
    advice = "Clone it first, or let go of the other";
  }
  throw InvalidArgument(fmt::format("the body wrote in place into a tensor of shape {}, which {}. {}",
                                    c10::str(input.at(position).sizes()), why, advice),
                        context);
}

bool is_refusal_of_inference_tensor(const std::exception& error) {
  return std::string_view(error.what()).find("Inference tensors cannot be saved for backward") !=
         std::string_view::npos;
}

void throw_inference_saved(const std::vector<std::string>& arguments, ErrorContext context) {
  context.argument = arguments.front();
  throw InvalidArgument(
      fmt::format("backward needs an inference tensor, and {} among the arguments: they were made in InferenceMode and "
                  "cannot be saved. Clone them outside of it, or call this pmap with gradients off",
                  arguments.size() == 1 ? arguments.front() + " is one"
                                        : fmt::format("{} are some", fmt::join(arguments, ", "))),
      context);
}

void throw_inference_differentiated(ErrorContext context) {
  throw InvalidArgument(
      "an inference tensor, made in InferenceMode, cannot be differentiated: clone it outside of that mode first",
      std::move(context));
}

}  // namespace brigade::detail
