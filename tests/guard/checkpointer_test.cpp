// Checkpoints of tensors: to the disk and back, and what is refused.
#include "brigade/guard/checkpointer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "brigade/base/error.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace brigade::guard {
namespace checkpointer_test {

using ::testing::HasSubstr;

void expect_same(const data::TensorMap& found, const data::TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const at::Tensor other = found.at(name), own = tensor.contiguous();
    EXPECT_EQ(other.sizes(), own.sizes()) << name;
    ASSERT_EQ(other.scalar_type(), own.scalar_type()) << name;
    EXPECT_EQ(std::memcmp(other.data_ptr(), own.data_ptr(), own.nbytes()), 0) << name;
  }
}

void expect_same(const std::optional<Checkpoint>& found, const Checkpoint& expected) {
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, expected.step);
  expect_same(found->model, expected.model);
  expect_same(found->optimizer, expected.optimizer);
  nlohmann::json state = expected.state;
  state["step"] = expected.step;
  EXPECT_EQ(found->state, state);
}

Checkpoint example(std::int64_t step) {
  const auto number = static_cast<double>(step);
  return {.step = step,
          .model = {{"w", at::arange(12, at::kFloat).view({3, 4}).t() * number},  // not contiguous
                    {"b", at::full({5}, -0.0, at::kDouble)},
                    {"ratio", at::full({}, std::nan(""), at::kFloat)},
                    {"counts", at::full({2}, step, at::kLong)},
                    {"mask", at::ones({3}, at::kBool)},
                    {"half", at::full({3}, number, at::kBFloat16)},
                    {"none", at::empty({0, 4})}},
          .optimizer = {{"momentum_buffer.w", at::full({3, 4}, number)}},
          .state = {{"epoch", step / 10}, {"seed", 7}}};
}

std::filesystem::path step_folder(const TemporaryFolder& folder, const std::string& name) {
  return folder.path() / name;
}

TEST(Checkpointer, WhatComesBackIsWhatWasSaved) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  EXPECT_FALSE(newest(folder.path()));
  for (const std::int64_t step : {40, 42}) checkpoints.save(example(step));
  checkpoints.finish();
  expect_same(newest(folder.path()), example(42));
  expect_same(load(step_folder(folder, "step-00000040")), example(40));
}

TEST(Checkpointer, CopiesWhatItIsGivenInTheCall) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  Checkpoint changing = example(3);
  for (int round = 0; round < 20; ++round) {
    changing.step = 3 + round;
    checkpoints.save(changing);
    for (auto& [name, tensor] : changing.optimizer) tensor.add_(1);
  }
  checkpoints.finish();
  const auto found = newest(folder.path());
  EXPECT_EQ(found->optimizer.at("momentum_buffer.w")[0][0].item<float>(), 3 + 19);
}

TEST(Checkpointer, ModelFilesAreOrdinarySafetensors) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  checkpoints.save(example(1));
  checkpoints.finish();
  expect_same(data::read_safetensors(step_folder(folder, "step-00000001") / "model.safetensors").tensors,
              example(1).model);
}

TEST(Checkpointer, ADamagedTensorIsRefusedAndTheOneBeforeTaken) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  for (const std::int64_t step : {1, 2}) checkpoints.save(example(step));
  checkpoints.finish();
  const auto file = step_folder(folder, "step-00000002") / "optimizer.safetensors";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('?');
  expect_error<DataError>([&] { load(file.parent_path()); }, {file.string(), "is not what was written"});
  expect_same(newest(folder.path()), example(1));
}

TEST(Checkpointer, TensorsThatNoFileHoldsAreRefusedByName) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  checkpoints.save({.step = 1, .model = {{"phase", at::zeros({2}, at::kComplexFloat)}}});
  expect_error<InvalidArgument>([&] { checkpoints.finish(); }, {"step 1", "phase", "complex64"});
  checkpoints.save({.step = 1, .model = {{"a\nb", at::zeros({2})}}});
  expect_error<InvalidArgument>([&] { checkpoints.finish(); }, {"step 1", "control character"});
  EXPECT_EQ(checkpoints.failures(), 2);
  EXPECT_FALSE(newest(folder.path()));
}

TEST(Checkpointer, LargerFilesThanAllowedAreNotRead) {
  const TemporaryFolder folder;
  Checkpointer checkpoints({.folder = folder.path()});
  checkpoints.save(example(1));
  checkpoints.finish();
  expect_error<DataError>([&] { load(step_folder(folder, "step-00000001"), {.max_bytes = 100}); },
                          {"above the limit of 100"});
}

TEST(Checkpointer, AFolderThatIsNoCheckpointIsRefused) {
  const TemporaryFolder folder;
  expect_error<DataError>([&] { load(folder.path()); }, {"manifest.json", "no whole checkpoint"});
  expect_error<DataError>([&] { load(folder.path() / "absent"); }, {"absent", "does not exist"});
}

}  // namespace checkpointer_test
}  // namespace brigade::guard
