#include "brigade/guard/compare.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "brigade/base/error.h"
#include "brigade/comm/dtype.h"
#include "guard/difference.h"
#include "guard/shown.h"

namespace brigade::guard {
namespace {

using Kind = Difference::Kind;
using json = nlohmann::json;

// Part of the state: who wrote the checkpoint, and on what. Equal runs may differ in it.
constexpr const char* kWriter = "written_by";

comm::DType dtype_of(const std::string& name, at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return comm::DType::kBool;
    case at::kByte:
      return comm::DType::kUint8;
    case at::kChar:
      return comm::DType::kInt8;
    case at::kShort:
      return comm::DType::kInt16;
    case at::kInt:
      return comm::DType::kInt32;
    case at::kLong:
      return comm::DType::kInt64;
    case at::kHalf:
      return comm::DType::kFloat16;
    case at::kBFloat16:
      return comm::DType::kBFloat16;
    case at::kFloat:
      return comm::DType::kFloat32;
    case at::kDouble:
      return comm::DType::kFloat64;
    default:
      throw InvalidArgument(
          fmt::format("compare: tensor {} is {}, which no checkpoint holds", shown(name), c10::toString(type)));
  }
}

std::string shape_of(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")); }
std::string type_of(const at::Tensor& tensor) { return c10::toString(tensor.scalar_type()); }

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// In a contiguous tensor.
std::vector<std::int64_t> index_of(std::uint64_t element, at::IntArrayRef sizes) {
  std::vector<std::int64_t> index(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    index[i] = static_cast<std::int64_t>(element % static_cast<std::uint64_t>(sizes[i]));
    element /= static_cast<std::uint64_t>(sizes[i]);
  }
  return index;
}

// Nothing when they are the same.
std::optional<Difference> difference_of(const std::string& name, const at::Tensor& first, const at::Tensor& second) {
  if (first.scalar_type() != second.scalar_type())
    return Difference{.kind = Kind::kDtype, .first = type_of(first), .second = type_of(second)};
  if (first.sizes() != second.sizes())
    return Difference{.kind = Kind::kShape, .first = shape_of(first), .second = shape_of(second)};
  const at::Tensor one = first.detach().cpu().contiguous(), other = second.detach().cpu().contiguous();
  const auto found = differences(dtype_of(name, one.scalar_type()), bytes_of(one), bytes_of(other));
  if (!found) return std::nullopt;
  return Difference{.kind = Kind::kValues,
                    .first = found->values[0],
                    .second = found->values[1],
                    .index = index_of(found->first, one.sizes()),
                    .count = found->count,
                    .elements = static_cast<std::uint64_t>(one.numel()),
                    .largest_ulps = found->largest_ulps};
}

// Everything that lies at the ends of a state's branches, by path.
std::map<std::string, std::string> leaves_of(const json& state) {
  std::map<std::string, std::string> leaves;
  if (state.empty()) return leaves;  // which flatten() calls a leaf
  const json flat = state.flatten();
  for (const auto& [path, value] : flat.items()) leaves[path] = value.dump(-1, ' ', true);
  return leaves;
}

// Calls `both` for names that both maps have, and adds a difference for the others. Maps are sorted, so names come in order.
template <class Map, class Describe, class Both>
void walk(const std::string& part, const Map& first, const Map& second, std::vector<Difference>& differences,
          const Describe& describe, const Both& both) {
  std::set<std::string> names;
  for (const auto& [name, value] : first) names.insert(name);
  for (const auto& [name, value] : second) names.insert(name);
  for (const std::string& name : names) {
    const auto one = first.find(name), other = second.find(name);
    if (one == first.end()) {
      differences.push_back(
          {.part = part, .name = name, .kind = Kind::kOnlyInSecond, .second = describe(other->second)});
    } else if (other == second.end()) {
      differences.push_back({.part = part, .name = name, .kind = Kind::kOnlyInFirst, .first = describe(one->second)});
    } else if (std::optional<Difference> found = both(name, one->second, other->second)) {
      found->part = part;
      found->name = name;
      differences.push_back(std::move(*found));
    }
  }
}

void compare_texts(const std::string& part, const std::map<std::string, std::string>& first,
                   const std::map<std::string, std::string>& second, std::vector<Difference>& differences) {
  walk(
      part, first, second, differences, [](const std::string& text) { return text; },
      [](const std::string&, const std::string& one, const std::string& other) -> std::optional<Difference> {
        if (one == other) return std::nullopt;
        return Difference{.kind = Kind::kValues, .first = one, .second = other};
      });
}

}  // namespace

Comparison compare(const data::TensorMap& first, const data::TensorMap& second, const std::string& part) {
  Comparison result;
  walk(
      part, first, second, result.differences,
      [](const at::Tensor& tensor) { return fmt::format("{}{}", type_of(tensor), shape_of(tensor)); },
      [&](const std::string& name, const at::Tensor& one, const at::Tensor& other) {
        ++result.tensors;
        return difference_of(name, one, other);
      });
  return result;
}

Comparison compare(const Checkpoint& first, const Checkpoint& second) {
  Comparison result = compare(first.model, second.model, "model");
  Comparison rest = compare(first.optimizer, second.optimizer, "optimizer");
  result.tensors += rest.tensors;
  std::move(rest.differences.begin(), rest.differences.end(), std::back_inserter(result.differences));
  const auto with_step = [](const Checkpoint& one) {
    json state = one.state;
    state["step"] = one.step;
    state.erase(kWriter);
    return leaves_of(state);
  };
  compare_texts("state", with_step(first), with_step(second), result.differences);
  const auto writer_of = [](const Checkpoint& one) { return leaves_of(one.state.value(kWriter, json::object())); };
  compare_texts(kWriter, writer_of(first), writer_of(second), result.notes);
  return result;
}

std::string describe(const Difference& one) {
  const std::string name = fmt::format("{} {}", one.part, shown(one.name));
  switch (one.kind) {
    case Kind::kOnlyInFirst:
      return fmt::format("{}: only the first has it: {}", name, one.first);
    case Kind::kOnlyInSecond:
      return fmt::format("{}: only the second has it: {}", name, one.second);
    case Kind::kDtype:
    case Kind::kShape:
      return fmt::format("{}: {} and {}", name, one.first, one.second);
    case Kind::kValues:
      break;
  }
  if (one.count == 0) return fmt::format("{}: {} and {}", name, one.first, one.second);
  return fmt::format("{}: {} of {} elements differ, first [{}]: {} and {}{}", name, one.count, one.elements,
                     fmt::join(one.index, ", "), one.first, one.second,
                     one.largest_ulps ? fmt::format(", up to {} unit{} in the last place", *one.largest_ulps,
                                                    *one.largest_ulps == 1 ? "" : "s")
                                      : std::string());
}

}  // namespace brigade::guard
