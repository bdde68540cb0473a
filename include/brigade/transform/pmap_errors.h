// What a pmap says when it is called wrongly.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/transform/input.h"

namespace brigade::detail {

// What one argument says about the number of devices, for the message when they disagree.
struct SizeClaim {
  enum class Kind : std::uint8_t { kRows, kOther, kSharded };  // kRows: a tensor that is mapped on axis 0

  std::string argument = {};              // path, such as `[0].w1`
  std::string shape = {};                 // "shape [4, 3]", or "a Sharded over 4 devices"
  std::optional<std::int64_t> size = {};  // along its mapped axis; nullopt when it is not mapped
  Kind kind = Kind::kOther;
};

// Checks that the dimension exists and returns it counted from the front. Throws ShapeError with the context.
std::int64_t mapped_dim(const at::Tensor& tensor, int axis, c10::function_ref<ErrorContext()> context);

// ShapeError for arguments whose sizes along their mapped axes are not all `expected`, listing every one. `expected_from`
// is the option that says so; without one, it is the size of the first.
[[noreturn]] void throw_sizes_disagree(std::int64_t expected, std::optional<std::string_view> expected_from,
                                       const std::vector<SizeClaim>& claims, const std::string& axis,
                                       std::source_location site);

// InvalidArgument for a body that wrote in place into `input`, which it does not own.
[[noreturn]] void throw_trespass(const Input& input, int position, const ErrorContext& context);

// Whether libtorch refused to save an inference tensor for backward.
bool is_refusal_of_inference_tensor(const std::exception& error);

// InvalidArgument for that refusal, when inference tensors are among the arguments: at the paths `arguments`.
[[noreturn]] void throw_inference_saved(const std::vector<std::string>& arguments, ErrorContext context);

// InvalidArgument for an inference tensor that is to be differentiated, which cannot be.
[[noreturn]] void throw_inference_differentiated(ErrorContext context);

}  // namespace brigade::detail
