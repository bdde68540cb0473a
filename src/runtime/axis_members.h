// The names of axes: in messages, and which devices of a mesh they mean.
#pragma once

#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/axis_names.h"
#include "brigade/runtime/mesh.h"

namespace brigade {

// What messages call an axis: `axis "i"`, or `an unnamed axis`.
std::string axis_text(std::string_view name);

// Some of the axes, by their numbers.
using Dims = c10::SmallVector<int, 4>;

// Which of `axes` the names are, in the order of the names. Throws as find_axis().
Dims dims_of(const std::vector<MeshAxis>& axes, const AxisNames& names, c10::function_ref<ErrorContext()> context);

// The positions that differ from `position` in `dims` only, in row-major order of `dims` as listed.
std::vector<int> positions_along(const std::vector<MeshAxis>& axes, const Dims& dims, int position);

}  // namespace brigade
