#include "brigade/guard/checkpointer.h"

#include <ATen/ATen.h>

#include <utility>

#include "guard/asynchronous_store.h"

namespace brigade::guard {
namespace {

// As a file has them, so that the thread that writes has nothing left to compute.
void copy_all(data::TensorMap& tensors) {
  for (auto& [name, tensor] : tensors) {
    if (tensor.defined()) tensor = tensor.detach().clone(at::MemoryFormat::Contiguous);
  }
}

Producer producer_of(data::TensorMap tensors) {
  return [tensors = std::move(tensors)](const data::ByteSink& sink) { data::write_safetensors(sink, tensors); };
}

}  // namespace

class Checkpointer::State {
 public:
  explicit State(CheckpointerOptions options) : store(system_calls(), std::move(options)) {}
  AsynchronousStore store;
};

Checkpointer::Checkpointer(CheckpointerOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Checkpointer::~Checkpointer() = default;
Checkpointer::Checkpointer(Checkpointer&&) noexcept = default;
Checkpointer& Checkpointer::operator=(Checkpointer&&) noexcept = default;

void Checkpointer::save(const Checkpoint& checkpoint) {
  Checkpoint own = checkpoint;
  copy_all(own.model);
  copy_all(own.optimizer);
  save(std::move(own));
}

void Checkpointer::save(Checkpoint&& checkpoint) {
  state_->store.write({.step = checkpoint.step,
                       .model = producer_of(std::move(checkpoint.model)),
                       .optimizer = producer_of(std::move(checkpoint.optimizer)),
                       .state = std::move(checkpoint.state)});
}

void Checkpointer::finish() { state_->store.finish(); }
std::int64_t Checkpointer::failures() const noexcept { return state_->store.failures(); }

}  // namespace brigade::guard
