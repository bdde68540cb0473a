// all_gather and psum_scatter, each the other's transpose.
#include "brigade/lax/gather.h"

#include <ATen/ATen.h>

#include "layout.h"
#include "linear_node.h"
#include "reducer.h"

namespace brigade::lax::detail {

Tensors all_gather(const Invocation& call, const Tensors& tensors, Layout layout) {
  const bool recorded = needs_recording(tensors);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    dims.push_back(checked_dim(call, tensors[i], layout, tensors[i].dim() + (layout.tiled ? 0 : 1), i));
  }
  Tensors results = move(call, {.operation = comm::Operation::kAllGather}, plain(call, tensors), tensors,
                         call.tag(recorded, described(layout)));
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = from_blocks(results[i], dims[i], layout.tiled);
  if (recorded) {
    record_linear(call, tensors, results, [call = call.in_backward(), layout](const Tensors& cotangents) {
      return psum_scatter(call, cotangents, layout);
    });
  }
  return results;
}

Tensors psum_scatter(const Invocation& call, const Tensors& tensors, Layout layout) {
  const bool recorded = needs_recording(tensors);
  Reducer reducer(call, {}, tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t dim = scattered_dim(call, tensors[i], layout, i);
    const at::Tensor blocks = to_blocks(plain(call, tensors[i]), dim, call.size(), layout.tiled);
    reducer.add(blocks, blocks.sizes().slice(1), type_of_sum(blocks.scalar_type()), tensors[i]);
  }
  Tensors results = reducer.run(comm::Operation::kReduceScatter, call.tag(recorded, described(layout)));
  if (recorded) {
    record_linear(call, tensors, results, [call = call.in_backward(), layout](const Tensors& cotangents) {
      return all_gather(call, cotangents, layout);
    });
  }
  return results;
}

}  // namespace brigade::lax::detail
