// A program of collectives, and the grid of devices that it runs on, as data.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "brigade/brigade.h"

namespace brigade::programs {

using Tensors = std::vector<torch::Tensor>;

enum class Op {
  kPsum,
  kPmean,
  kWeightedPmean,
  kPmax,
  kPmin,
  kPargmax,
  kPargmin,
  kAllGather,
  kPsumScatter,
  kAllToAll,
  kPswapaxes,
  kPpermute,
  kPshuffle,
  kPbroadcast,
};
constexpr int kOps = 14;

// One collective of a program, with what it is given on every device.
struct Step {
  Op op;
  std::vector<std::string> axis;
  lax::AxisIndexGroups groups;
  std::int64_t dim = 0, concat = 0;
  bool tiled = false;
  bool moved = false;  // passes temporaries
  lax::RankPairs pairs;
  std::vector<int> perm;
  int source = 0;
  std::vector<Tensors> inputs;  // [device][leaf]
  std::vector<double> weights;  // [device]
};

inline bool is_order(Op op) { return op == Op::kPmax || op == Op::kPmin || op == Op::kPargmax || op == Op::kPargmin; }

// Where a program runs: devices in a row-major grid of named axes.
struct Grid {
  std::vector<MeshAxis> axes;

  int devices() const {
    int count = 1;
    for (const MeshAxis& axis : axes) count *= static_cast<int>(axis.size);
    return count;
  }

  // A device's place on the axis called `name`.
  int coordinate(int device, const std::string& name) const {
    for (std::size_t i = axes.size(); i-- > 0; device /= static_cast<int>(axes[i].size)) {
      if (axes[i].name == name) return device % static_cast<int>(axes[i].size);
    }
    return -1;
  }

  int rank(int device, const std::vector<std::string>& names) const {
    int rank = 0;
    for (const std::string& name : names) rank = rank * size(name) + coordinate(device, name);
    return rank;
  }

  int size(const std::string& name) const {
    for (const MeshAxis& axis : axes) {
      if (axis.name == name) return static_cast<int>(axis.size);
    }
    return 0;
  }

  int size(const std::vector<std::string>& names) const {
    int product = 1;
    for (const std::string& name : names) product *= size(name);
    return product;
  }

  // The devices that meet with `device`, in order of rank on the axes: those that stand where it stands on all others.
  std::vector<int> members(int device, const std::vector<std::string>& names) const {
    std::vector<int> found(static_cast<std::size_t>(size(names)));
    for (int other = 0; other < devices(); ++other) {
      const bool meets = std::all_of(axes.begin(), axes.end(), [&](const MeshAxis& axis) {
        const bool free = std::find(names.begin(), names.end(), axis.name) != names.end();
        return free || coordinate(other, axis.name) == coordinate(device, axis.name);
      });
      if (meets) found[static_cast<std::size_t>(rank(other, names))] = other;
    }
    return found;
  }
};

}  // namespace brigade::programs
