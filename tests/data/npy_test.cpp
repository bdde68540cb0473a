#include "brigade/data/npy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "brigade/base/error.h"
#include "data/npy_files.h"
#include "support/case_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace npy_test {

const std::filesystem::path kRecorded = cases::own_path("npy");

// What make.py put there: 0 to 5, or whether they are odd.
TEST(ReadNpy, ReadsEveryDtypeOfEitherByteOrder) {
  const std::map<std::string, at::ScalarType> files = {
      {"bool", at::kBool},        {"uint8", at::kByte},        {"int8", at::kChar},          {"int16", at::kShort},
      {"int32", at::kInt},        {"int64", at::kLong},        {"float16", at::kHalf},       {"float32", at::kFloat},
      {"float64", at::kDouble},   {"big_int16", at::kShort},   {"big_int32", at::kInt},      {"big_int64", at::kLong},
      {"big_float16", at::kHalf}, {"big_float32", at::kFloat}, {"big_float64", at::kDouble}, {"version_2", at::kInt},
      {"version_3", at::kInt}};
  const torch::Tensor values = at::arange(6, at::kLong).reshape({2, 3});
  for (const auto& [name, dtype] : files) {
    const torch::Tensor tensor = read_npy(kRecorded / (name + ".npy"));
    const torch::Tensor expected = dtype == at::kBool ? values.remainder(2).to(dtype) : values.to(dtype);
    EXPECT_EQ(tensor.scalar_type(), dtype) << name;
    EXPECT_TRUE(tensor.equal(expected)) << name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u) << name;
  }
}

TEST(ReadNpy, ReadsArraysWhoseFirstAxisIsTheFastest) {
  const torch::Tensor expected = at::arange(24, at::kLong).reshape({2, 3, 4});
  const torch::Tensor tensor = read_npy(kRecorded / "fortran.npy");
  EXPECT_TRUE(tensor.equal(expected.to(at::kInt)));
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_TRUE(read_npy(kRecorded / "big_fortran.npy").equal(expected.to(at::kDouble)));
}

TEST(ReadNpy, ReadsScalarsAndArraysOfNothing) {
  EXPECT_TRUE(read_npy(kRecorded / "scalar.npy").equal(at::scalar_tensor(2.5, at::kFloat)));
  EXPECT_EQ(read_npy(kRecorded / "empty.npy").sizes(), at::IntArrayRef({0, 3}));
}

TEST(ReadNpy, NamesTheFileThatItRefuses) {
  const auto file = kRecorded / "refused_objects.npy";
  expect_error<DataError>([&] { read_npy(file); }, {file.string() + ": holds Python objects"});
  EXPECT_ERROR(read_npy(kRecorded / "int64.npy", {.max_bytes = 47}), DataError, "limit of 47 bytes");
}

TEST(Npy, PairsRowsWithLabelsOfAnyIntegers) {
  const TemporaryFolder folder;
  const auto x = folder.write("x", npy_file(npy_header("<f4", "(3, 2)"), 24));
  const auto y = folder.write("y", npy_file(npy_header("|i1", "(3,)"), 3));
  const Dataset dataset = npy(x, y);
  EXPECT_EQ(dataset.rows(), 3);
  EXPECT_EQ(dataset.x.scalar_type(), at::kFloat);
  EXPECT_TRUE(dataset.y.equal(at::tensor({0, 1, 2}, at::kLong)));
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_EQ(npy(x, y, {.classes = 10}).classes, 10);
}

TEST(Npy, RefusesWhatDoesNotBelongTogether) {
  const TemporaryFolder folder;
  const auto x = folder.write("x", npy_file(npy_header("<f4", "(3, 2)"), 24));
  const auto y = folder.write("y", npy_file(npy_header("|u1", "(3, 2)"), 6));
  const auto with = [&](const std::filesystem::path& labels, std::int64_t classes = 0) {
    return [&x, labels, classes] { npy(x, labels, {.classes = classes}); };
  };
  const auto write = [&](const std::string& descr, const std::string& shape, std::size_t bytes) {
    return folder.write("labels", npy_file(npy_header(descr, shape), bytes));
  };
  expect_error<DataError>(with(write("|u1", "(4,)", 4)), {"labels: holds 4 labels for the 3 rows of " + x.string()});
  expect_error<DataError>(with(x), {x.string() + ": holds Float, where labels are whole numbers", "swapped"});
  expect_error<DataError>(with(write("|u1", "()", 1)), {"labels: holds no rows"});
  expect_error<DataError>(with(write("|u1", "(0,)", 0)), {"labels: holds no rows"});
  // The bytes 0, 1, ... 5 in rows of two.
  expect_error<DataError>(with(y, 5), {y.string() + ": label 5 at row 2", "5 classes, 0 to 4"});
  Bytes negative = npy_file(npy_header("|i1", "(3,)"), 3);
  negative[negative.size() - 2] = std::byte{0xff};
  expect_error<DataError>(with(folder.write("labels", negative)), {"labels: label -1 at row 1 is below 0"});
  expect_error<InvalidArgument>(with(y, -1), {"-1 classes cannot be"});
}

}  // namespace npy_test
}  // namespace brigade::data
