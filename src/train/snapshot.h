// A trainer's memory as a checkpoint, and back.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "brigade/guard/checkpoint.h"
#include "brigade/train/options.h"
#include "brigade/train/replica.h"
#include "brigade/train/resume.h"
#include "brigade/train/trainer.h"

namespace brigade::training {

// What a run continues from besides its step, as tensors on the trainer's own memory: reading them saves it, writing into them
// restores it.
struct Memory {
  std::vector<NamedTensor> model = {};      // of replica 0: parameters, frozen ones, buffers
  std::vector<NamedTensor> optimizer = {};  // "exp_avg.<parameter>", "update_count.<parameter>", "loss_scale", ...
};

// A number as a tensor on its memory.
at::Tensor tensor_on(double& number);
at::Tensor tensor_on(std::int64_t& number);

// Parameters, frozen ones and buffers. Throws InvalidArgument when two have one name.
std::vector<NamedTensor> tensors_of(const Replica& replica);

// A copy of it all.
guard::Checkpoint snapshot_of(const Memory& memory, std::int64_t step, const DataParallelOptions& options,
                              const StepShape& shape);

// Throws InvalidArgument that lists what differs: tensors that one has and the other lacks, shapes, dtypes; and whatever of the
// options would train differently, which may be a warning instead.
void require_restorable(const guard::Checkpoint& checkpoint, const Memory& memory, const DataParallelOptions& options,
                        const StepShape& shape, OtherOptions other_options);

// What was found restorable, into the memory, which is of the first of the replicas, and from there into the others.
void restore(const guard::Checkpoint& checkpoint, const Memory& memory, const std::vector<Replica>& replicas);

}  // namespace brigade::training
