#include "brigade/data/npy.h"

#include <ATen/ATen.h>

#include <numeric>
#include <vector>

#include "data/byte_source.h"
#include "data/npy_parser.h"
#include "data/pair.h"
#include "data/tensor_bytes.h"

namespace brigade::data {

torch::Tensor read_npy(const std::filesystem::path& file, NpyOptions options) {
  FileSource source(file);
  const NpyHeader header = read_npy_header(source, options.max_bytes);
  // Where the first axis is the fastest, memory holds the transposed array.
  std::vector<std::int64_t> sizes = header.sizes;
  if (header.axis_order == AxisOrder::kFirstFastest) sizes.assign(header.sizes.rbegin(), header.sizes.rend());
  torch::Tensor tensor = at::empty(sizes, scalar_type_of(header.dtype));
  read_npy_data(source, header, bytes_of(tensor));
  if (header.axis_order == AxisOrder::kLastFastest) return tensor;
  std::vector<std::int64_t> axes(sizes.size());
  std::iota(axes.rbegin(), axes.rend(), std::int64_t{0});
  return tensor.permute(axes).contiguous();
}

Dataset npy(const std::filesystem::path& x, const std::filesystem::path& y, NpyOptions options) {
  check_classes(options.classes);
  return pair_up({.name = x.string(), .tensor = read_npy(x, options)},
                 {.name = y.string(), .tensor = read_npy(y, options)}, options.classes);
}

}  // namespace brigade::data
