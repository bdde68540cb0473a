// Synchronous data-parallel training of a model on all devices of this process.
//
//   DataParallel trainer([] { return SmallCnn(); },
//                        {.optimizer = optim::sgd({.momentum = 0.9}), .learning_rate = schedule::constant(0.1),
//                         .global_batch = 128, .logical_shards = 8});
//   for (auto& batch : trainer.loader(data.train, {.epochs = 3})) {
//     StepReport report = trainer.step(batch, [](SmallCnn& net, const data::Shard& b) {
//       return torch::cross_entropy_loss(net->forward(b.x), b.y);
//     });
//   }
//
// A step cuts its rows into leaves, runs forward and backward of each on the device that carries it, sums the gradients over
// all leaves in one fixed tree while backward goes on, and updates every replica alike. With logical_shards the bits do not
// depend on how many devices there are.
//
// The loss function is called once for each leaf, on the leaf's device, with that device's replica and the leaf's rows. It
// returns the mean loss of those rows, or a training::Loss. It is shared by all devices, so it keeps no state of its own.
#pragma once

#include <concepts>
#include <filesystem>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/data/loader.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/module_handle.h"
#include "brigade/train/options.h"
#include "brigade/train/replica.h"
#include "brigade/train/rows.h"
#include "brigade/train/trainer.h"

namespace brigade {

using training::DataParallelOptions;
using training::StepReport;

namespace training {

namespace detail {

template <ModuleHandle M>
std::shared_ptr<torch::nn::Module> module_of(M& model) {
  if constexpr (requires { model.ptr(); }) {
    return model.ptr();
  } else {
    return model;
  }
}

template <ModuleHandle M>
Replica replica_of(M& model) {
  return training::replica_of(module_of(model));
}

template <tree::Tree T>
Replica replica_of(T& parameters) {
  return training::replica_of(parameters);
}

// Keeps libtorch's default generator where it is after the first of several calls, so that a program draws the same numbers
// whatever the number of devices is.
class GeneratorKept {
 public:
  GeneratorKept();
  ~GeneratorKept();
  GeneratorKept(const GeneratorKept&) = delete;
  GeneratorKept& operator=(const GeneratorKept&) = delete;

 private:
  at::Tensor state_;
};

template <class Factory>
auto models_by(Factory& factory, std::int64_t count) {
  std::vector<std::invoke_result_t<Factory&>> models;
  models.push_back(factory());
  const GeneratorKept kept;
  while (static_cast<std::int64_t>(models.size()) < count) models.push_back(factory());
  return models;
}

// A copy by torch::nn::Cloneable. Throws InvalidArgument for a module that is none.
std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module, std::source_location site);

// The model itself, and clones of it.
template <ModuleHandle M>
std::vector<M> clones_of(M model, std::int64_t count, std::source_location site) {
  using Module = std::remove_reference_t<decltype(*model)>;
  std::vector<M> models = {model};
  const GeneratorKept kept;  // a clone draws first values, which are then overwritten
  while (static_cast<std::int64_t>(models.size()) < count)
    models.push_back(M(std::dynamic_pointer_cast<Module>(clone_of(*model, site))));
  return models;
}

template <class Model>
std::vector<Replica> replicas_of(std::vector<Model>& models) {
  std::vector<Replica> replicas;
  for (Model& model : models) replicas.push_back(replica_of(model));
  return replicas;
}

// The position of the device that runs a body on this thread; 0 outside.
std::size_t current_position();

}  // namespace detail
}  // namespace training

template <class Model>
class DataParallel {
 public:
  // One replica per device, by calling `factory` in this thread. They start with the values of the first. Throws
  // InvalidArgument for options that do not go together, and a model that cannot be trained; both name what it is.
  template <training::ModelFactory Factory>
  explicit DataParallel(Factory factory, DataParallelOptions options = {},
                        std::source_location site = std::source_location::current()) requires
      std::same_as<std::invoke_result_t<Factory&>, Model>
      : models_(training::detail::models_by(factory, training::step_shape(options, site).devices)),
        trainer_(training::detail::replicas_of(models_), std::move(options), site) {}

  // Of one module, which is the first replica; the others are clones of it. Throws InvalidArgument when it cannot be cloned:
  // torch::nn::Cloneable is what makes a module so.
  explicit DataParallel(
      Model model, DataParallelOptions options = {},
      std::source_location site = std::source_location::current()) requires training::ModuleHandle<Model>
      : models_(training::detail::clones_of(std::move(model), training::step_shape(options, site).devices, site)),
        trainer_(training::detail::replicas_of(models_), std::move(options), site) {}

  // Of a tree of parameters: each device has a copy, whose tensors require grad.
  explicit DataParallel(Model parameters, DataParallelOptions options = {},
                        std::source_location site = std::source_location::current()) requires tree::Tree<Model>
      : models_(static_cast<std::size_t>(training::step_shape(options, site).devices), parameters),
        trainer_(training::detail::replicas_of(models_), std::move(options), site) {}

  // One step on a batch of a loader(), or on any tree of tensors whose leading dimension counts rows. The last batch of an
  // epoch may have fewer rows than the others, down to one. When it throws, nothing has changed.
  template <class Batch, class LossFunction>
  StepReport step(const Batch& batch, LossFunction&& loss) {
    return trainer_.step(rows_in(batch), forward_of(batch, loss));
  }

  // A part of a step: forward and backward of the batch's rows, whose gradients stay on their devices. The next step() adds its own
  // rows, reduces once, and updates by the mean over all of them, as PyTorch's no_sync() does. For steps of more rows than a batch
  // has, where .accumulate does not fit: the number of parts may change from step to step.
  //
  // Rows, loss, metrics and times of the report are of the step so far; what only an update has, such as the norm of the gradient, is
  // not there. Keys of dropout go on from part to part; leaf_index() and batch normalisation see one part. The learning rate is that
  // of a step of one batch. The noise scale is not measured in steps with parts. Parameters must not be written between parts.
  //
  // A part that throws leaves the ones before it; a step that is skipped, or throws NonFiniteError, drops them. Throws InvalidArgument
  // with logical_shards, as bits would depend on the devices, and with compress; snapshot() throws it between parts.
  template <class Batch, class LossFunction>
  StepReport no_sync(const Batch& batch, LossFunction&& loss) {
    return trainer_.no_sync(rows_in(batch), forward_of(batch, loss));
  }

  // Every device's sums added up, each row counted once: `measure(model, rows)` returns a tensor, or a tree of tensors, that
  // is a sum over the rows it was given. Modules are in evaluation mode, and gradients off.
  template <class Batch, class MeasureFunction>
  auto evaluate(const Batch& batch, MeasureFunction&& measure) {
    using Rows = decltype(training::detail::rows_of(batch, 0, {}));
    using Result = std::remove_cvref_t<std::invoke_result_t<MeasureFunction&, Model&, Rows>>;
    static_assert(tree::Tree<Result>, "what is measured is a tensor or a tree of tensors");
    std::vector<std::optional<Result>> first(1);
    const auto sums = trainer_.evaluate(
        rows_in(batch), [&](int position, std::int64_t leaf, data::RowRange rows) -> std::vector<at::Tensor> {
          Result result =
              measure(models_[static_cast<std::size_t>(position)], training::detail::rows_of(batch, leaf, rows));
          std::vector<at::Tensor> tensors = tree::flatten(result);
          if (leaf == 0) first.front() = std::move(result);
          return tensors;
        });
    return tree::unflatten(*first.front(), sums);
  }

  // Batches of whole steps, cut into this trainer's leaves ahead of time. `options.global_batch` and `.shards` are the
  // trainer's.
  data::Loader loader(data::Dataset dataset, data::LoaderOptions options = {}) const {
    options.global_batch = trainer_.shape().global_batch();
    options.shards = trainer_.shape().leaves;
    return data::Loader(std::move(dataset), std::move(options));
  }

  // Writes everything that the run continues from into `folder`, as a checkpoint of its own there, and returns when it is on the
  // disk; with the loader, its position as well. Older checkpoints of the folder go, up to the last before. For checkpoints that
  // are written while training goes on: guard::Checkpointer and snapshot().
  void save(const std::filesystem::path& folder) { training::detail::save_now(snapshot(), folder); }
  void save(const std::filesystem::path& folder, const data::Loader& loader) {
    training::detail::save_now(snapshot(loader), folder);
  }

  // Continues from the newest sound checkpoint of `folder`, as if the run had never stopped, bit for bit; the loader goes to where it
  // was. Throws DataError when there is none, and what restore() throws.
  void load(const std::filesystem::path& folder, const training::RestoreOptions& options = {}) {
    restore(training::detail::newest_or_throw(folder), options);
  }
  void load(const std::filesystem::path& folder, data::Loader& loader, const training::RestoreOptions& options = {}) {
    restore(training::detail::newest_or_throw(folder), loader, options);
  }

  // A copy of all that, for guard::Checkpointer::save (brigade/guard/checkpointer.h). What the program adds to `.state` comes back.
  guard::Checkpoint snapshot() { return trainer_.snapshot(); }
  guard::Checkpoint snapshot(const data::Loader& loader) {
    auto checkpoint = trainer_.snapshot();
    training::put_position(loader, checkpoint);
    return checkpoint;
  }

  // Continues from a checkpoint. Throws InvalidArgument that lists what differs when it is of another model, optimizer or training;
  // nothing is changed then, and the loader is where it was.
  void restore(const guard::Checkpoint& checkpoint, const training::RestoreOptions& options = {}) {
    trainer_.restore(checkpoint, options);
  }
  void restore(const guard::Checkpoint& checkpoint, data::Loader& loader,
               const training::RestoreOptions& options = {}) {
    trainer_.restore(checkpoint, loader, options);
  }

  // The replica of the device that runs this code; outside a loss function, the first one.
  Model& model() { return models_[training::detail::current_position()]; }
  Model& replica(std::size_t position) { return models_.at(position); }

  const training::StepShape& shape() const noexcept { return trainer_.shape(); }
  std::int64_t steps() const noexcept { return trainer_.steps(); }
  std::vector<DeviceStatistics> statistics() const { return trainer_.statistics(); }  // of each device
  void reset_statistics() { trainer_.reset_statistics(); }
  std::vector<training::NamedTensor> gradients() const { return trainer_.gradients(); }
  std::vector<training::NamedTensor> optimizer_state() const { return trainer_.optimizer_state(); }
  std::string describe() const { return trainer_.describe(); }

 private:
  // The two outlive it.
  template <class Batch, class LossFunction>
  auto forward_of(const Batch& batch, LossFunction& loss) {
    return [this, &batch, &loss](int position, std::int64_t leaf, data::RowRange rows) -> training::Loss {
      return loss(models_[static_cast<std::size_t>(position)], training::detail::rows_of(batch, leaf, rows));
    };
  }

  std::int64_t rows_in(const data::Batch& batch) const {
    if (static_cast<std::int64_t>(batch.shards.size()) != trainer_.shape().leaves)
      training::detail::throw_shards_differ(batch.shards.size(), trainer_.shape().leaves);
    return batch.rows;
  }
  template <tree::Tree B>
  std::int64_t rows_in(const B& batch) const {
    return training::detail::rows_in(batch);
  }

  std::vector<Model> models_;  // [position]; the trainer's tensors are theirs
  training::Trainer trainer_;
};

template <class T>
requires(training::ModelFactory<T>) DataParallel(T, DataParallelOptions = {}, std::source_location = {})
->DataParallel<std::invoke_result_t<T&>>;

template <class T>
requires(!training::ModelFactory<T>) DataParallel(T, DataParallelOptions = {}, std::source_location = {})
->DataParallel<T>;

}  // namespace brigade
