#include "brigade/transform/input.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <bit>

#include "brigade/lax/ownership.h"

namespace brigade::detail {
namespace {

// T(i, j) over values: the one order in which sums over devices are taken.
at::Tensor tree_sum(const std::vector<at::Tensor>& values, std::size_t first, std::size_t last) {
  if (last - first == 1) return values[first];
  const std::size_t half = std::bit_floor(last - first - 1);
  return tree_sum(values, first, first + half) + tree_sum(values, first + half, last);
}

// A second handle, outside any graph, with versions of its own. What detach() does, at a fifth of the price.
at::Tensor alias_of(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0),
                                                                          /*allow_tensor_metadata_change=*/true));
}

at::Tensor slice_of(const at::Tensor& tensor, std::int64_t dim, std::int64_t index) {
  // Below these keys a view is no part of a graph, and counts its versions itself.
  const at::AutoDispatchBelowADInplaceOrView below;
  return tensor.select(dim, index);
}

void release_held_storage(void* held) { delete static_cast<c10::Storage*>(held); }

// The storage whose memory `storage` borrows, when sole_handle() made it; itself otherwise.
const c10::Storage& root_of(const c10::Storage& storage) {
  const auto* held = storage.data_ptr().cast_context<c10::Storage>(&release_held_storage);
  return held == nullptr ? storage : *held;
}

// A tensor in the memory of `tensor`, with a storage that nobody else has.
at::Tensor sole_handle(const at::Tensor& tensor) {
  const c10::Storage& root = root_of(tensor.storage());
  auto held = std::make_unique<c10::Storage>(root);
  void* const data = root.data_ptr().get();
  at::DataPtr memory(data, held.release(), &release_held_storage, root.device());
  at::Tensor own = alias_of(tensor);
  own.unsafeGetTensorImpl()->set_storage_keep_dtype(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(), std::move(memory), root.allocator(),
      /*resizable=*/true));
  return own;
}

// Whether the argument and its Input hold the only ways to the memory of `tensor`.
bool is_given_up_entirely(const at::Tensor& tensor) {
  return lax::detail::is_held_by(2, tensor) && root_of(tensor.storage()).use_count() == 1;
}

}  // namespace

void Input::settle_ownership() {
  // Slices of one tensor must not share memory, as those of an expanded one do.
  owned_ = given_up_ && kind_ != Kind::kWhole && std::all_of(tensors_.begin(), tensors_.end(), is_given_up_entirely) &&
           (kind_ != Kind::kSplit || tensors_[0].is_non_overlapping_and_dense());
}

bool Input::requires_grad() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const at::Tensor& t) { return t.requires_grad(); });
}

bool Input::is_inference() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const at::Tensor& t) { return t.is_inference(); });
}

at::Tensor Input::at(int position) const {
  const at::Tensor& source = tensors_[number_of(position)];
  if (owned_ && kind_ == Kind::kPerDevice && !source.is_inference()) return sole_handle(source);
  at::Tensor own = kind_ == Kind::kSplit ? slice_of(source, dim_, position) : alias_of(source);
  if (recorded_ && !source.is_inference()) {
    own.unsafeGetTensorImpl()->set_version_counter(source.unsafeGetTensorImpl()->version_counter());
  }
  return own;
}

std::vector<at::Tensor> Input::combine(const std::vector<at::Tensor>& gradients) const {
  switch (kind_) {
    case Kind::kSplit:
      return {at::stack(gradients, dim_)};
    case Kind::kWhole:
      return {tree_sum(gradients, 0, gradients.size())};
    case Kind::kPerDevice:
      break;
  }
  return gradients;
}

}  // namespace brigade::detail
