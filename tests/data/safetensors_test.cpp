#include "brigade/data/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>
#include <stdexcept>

#include "brigade/base/error.h"
#include "data/safetensors_files.h"
#include "support/case_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace safetensors_test {

const std::filesystem::path kPython = cases::own_path("safetensors-python");

Bytes written(const TensorMap& tensors, const Metadata& metadata = {}) {
  Bytes file;
  write_safetensors([&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); },
                    tensors, metadata);
  return file;
}

// What make.py put there: 0 to 5, or whether they are odd.
TEST(SafeTensors, ReadsEveryDtypeThatTheReferenceWrote) {
  const SafeTensors file = read_safetensors(kPython / "every_dtype.safetensors");
  const std::map<std::string, at::ScalarType> dtypes = {
      {"bool", at::kBool}, {"u8", at::kByte},  {"i8", at::kChar},       {"i16", at::kShort}, {"i32", at::kInt},
      {"i64", at::kLong},  {"f16", at::kHalf}, {"bf16", at::kBFloat16}, {"f32", at::kFloat}, {"f64", at::kDouble}};
  EXPECT_EQ(file.tensors.size(), dtypes.size());
  const torch::Tensor values = at::arange(6, at::kLong).reshape({2, 3});
  for (const auto& [name, dtype] : dtypes) {
    const torch::Tensor expected = dtype == at::kBool ? values.remainder(2).to(dtype) : values.to(dtype);
    EXPECT_EQ(file.at(name).scalar_type(), dtype) << name;
    EXPECT_TRUE(file.at(name).equal(expected)) << name;
  }
  EXPECT_EQ(file.metadata, (Metadata{{"format", "np"}}));
}

TEST(SafeTensors, ReadsShapesAndNamesAtTheEdges) {
  const SafeTensors file = read_safetensors(kPython / "edges.safetensors");
  EXPECT_EQ(file.tensors.size(), 5u);
  EXPECT_TRUE(file.at("scalar").equal(at::scalar_tensor(2.5, at::kFloat)));
  EXPECT_EQ(file.at("empty").sizes(), at::IntArrayRef({0, 3}));
  EXPECT_TRUE(file.at("one byte").equal(at::tensor({200}, at::kByte)));
  const torch::Tensor weights = file.at("Gewicht \u00fc \u91cd\u307f \U0001f373");
  EXPECT_TRUE(weights.equal(at::tensor({1.5, -0.0, std::numeric_limits<double>::infinity()}, at::kDouble)));
  EXPECT_TRUE(weights.signbit()[1].item<bool>());
  EXPECT_TRUE(file.at("quote \" and \\ back").equal(at::tensor({-1, -2}, at::kShort).reshape({2, 1})));
  EXPECT_EQ(file.metadata, (Metadata{{"say \"\u00fc\"", "two\nlines\tand \\ more"}}));
}

TEST(SafeTensors, WritesTheBytesOfTheReference) {
  for (const std::string name : {"every_dtype.safetensors", "edges.safetensors"}) {
    const SafeTensors file = read_safetensors(kPython / name);
    EXPECT_EQ(written(file.tensors, file.metadata), read_file(kPython / name)) << name;
  }
}

TEST(SafeTensors, TensorsAreAlignedAndContiguousAndTheirOwn) {
  const TemporaryFolder folder;
  const auto path = folder.write("f", safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                       R"("b":{"dtype":"F64","shape":[2,1],"data_offsets":[1,17]}})",
                                                       17));
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u) << name;
    EXPECT_TRUE(tensor.is_contiguous()) << name;
    EXPECT_EQ(tensor.storage().nbytes(), tensor.nbytes()) << name;
    EXPECT_FALSE(tensor.requires_grad()) << name;
  }
}

TEST(SafeTensors, WritesValuesWhateverTheStridesAndTheGraph) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  const torch::Tensor base = at::arange(24, at::kFloat).reshape({4, 6});
  const torch::Tensor negative = at::imag(at::conj(at::complex(base, base)));
  ASSERT_TRUE(negative.is_neg());
  const torch::Tensor parameter = base.clone().set_requires_grad(true);
  write_safetensors(path, {{"transposed", base.t()},
                           {"expanded", base.narrow(1, 0, 1).expand({4, 3})},
                           {"part", base.narrow(0, 1, 2)},
                           {"parameter", parameter},
                           {"computed", parameter * 2},
                           {"negative", negative},
                           {"channels last", base.reshape({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast)}});
  const SafeTensors file = read_safetensors(path);
  EXPECT_TRUE(file.at("transposed").equal(base.t()));
  EXPECT_TRUE(file.at("expanded").equal(base.narrow(1, 0, 1).expand({4, 3})));
  EXPECT_TRUE(file.at("part").equal(base.narrow(0, 1, 2)));
  EXPECT_TRUE(file.at("parameter").equal(base));
  EXPECT_TRUE(file.at("computed").equal(base * 2));
  EXPECT_TRUE(file.at("negative").equal(-base));
  EXPECT_TRUE(file.at("channels last").equal(base.reshape({1, 2, 3, 4})));
}

TEST(SafeTensors, KeepsEveryBit) {
  const torch::Tensor bits = at::tensor({0x7fc00001, 0x00000001, static_cast<int>(0x80000000), 0x7f800000}, at::kInt);
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "f", {{"a", bits.view(at::kFloat)}});
  EXPECT_TRUE(read_safetensors(folder.path() / "f").at("a").view(at::kInt).equal(bits));
}

TEST(SafeTensors, RefusesTensorsThatTheFormatCannotHold) {
  const auto writing = [](const torch::Tensor& tensor) { return [tensor] { written({{"w", tensor}}); }; };
  expect_error<InvalidArgument>(writing({}), {"tensor \"w\" cannot be written: it is undefined"});
  expect_error<InvalidArgument>(writing(at::ones(2).to_sparse()), {"\"w\"", "not dense", "to_dense()"});
  expect_error<InvalidArgument>(writing(at::zeros(2, at::kComplexFloat)), {"\"w\"", "no complex64", "view_as_real"});
  expect_error<InvalidArgument>(writing(at::quantize_per_tensor(at::ones(2), 1, 0, at::kQInt8)), {"\"w\"", "no QInt8"});
}

TEST(SafeTensors, AWriteThatFailsLeavesTheFileThatWasThere) {
  const TemporaryFolder folder;
  const auto path = folder.write_text("f", "old");
  EXPECT_ERROR(write_safetensors(path, {{"", at::ones(2)}}), InvalidArgument, "its name is empty");
  torch::Tensor odd = at::zeros(2, at::kBool);
  std::memset(odd.data_ptr(), 2, 1);
  EXPECT_ERROR(write_safetensors(path, {{"a", at::ones(2)}, {"b", odd}}), InvalidArgument, "neither 0 nor 1");
  EXPECT_EQ(read_file(path), text_bytes("old"));
  write_safetensors(path, {{"a", at::ones(2)}});
  EXPECT_TRUE(read_safetensors(path).at("a").equal(at::ones(2)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(SafeTensors, TheSinkGetsTheBytesOfTheFileInOrderAndMayStopThem) {
  const TemporaryFolder folder;
  const TensorMap tensors = {{"a", at::ones({2, 2})}, {"b", at::zeros(3, at::kByte)}};
  write_safetensors(folder.path() / "f", tensors, {{"k", "v"}});
  EXPECT_EQ(written(tensors, {{"k", "v"}}), read_file(folder.path() / "f"));
  EXPECT_ERROR(write_safetensors([](std::span<const std::byte>) { throw std::out_of_range("full"); }, tensors),
               std::out_of_range, "full");
}

TEST(SafeTensors, ShowsAnObserverTheBytesThatItReads) {
  Bytes seen;
  read_safetensors(kPython / "edges.safetensors", {.on_bytes = [&](std::span<const std::byte> bytes) {
                     seen.insert(seen.end(), bytes.begin(), bytes.end());
                   }});
  EXPECT_EQ(seen, read_file(kPython / "edges.safetensors"));
}

TEST(SafeTensors, HoldsToItsLimits) {
  const auto path = kPython / "every_dtype.safetensors";
  EXPECT_ERROR(read_safetensors(path, {.max_bytes = 197}), DataError, "198 bytes of data, above the limit of 197");
  EXPECT_ERROR(read_safetensors(path, {.max_header_bytes = 600}), DataError, "above the limit of 600");
}

TEST(SafeTensors, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_ERROR(read_safetensors(pipe), DataError, "is a pipe");
  EXPECT_ERROR(read_safetensors(folder.path()), DataError, "is a directory");
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(kPython / "edges.safetensors", link);
  EXPECT_EQ(read_safetensors(link).tensors.size(), 5u);
  EXPECT_ERROR(read_safetensors(link, {.links = SymbolicLinks::kRefuse}), DataError, "is a symbolic link");
}

TEST(SafeTensors, SaysWhichNameIsNearestToOneThatIsNotThere) {
  const SafeTensors file{.tensors = {{"layer.weight", at::ones(1)}, {"layer.bias", at::ones(1)}}};
  EXPECT_ERROR(file.at("layer.wieght"), DataError, "no tensor \"layer.wieght\" among the 2");
  EXPECT_ERROR(file.at("layer.wieght"), DataError, "did you mean \"layer.weight\"?");
  EXPECT_ERROR(SafeTensors().at("w"), DataError, "among the 0 of this safetensors file.");
}

TEST(SafeTensorsDataset, PairsTheTensorsThatAreNamed) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_safetensors(path, {{"images", at::zeros({3, 2, 2}, at::kByte)},
                           {"labels", at::tensor({4, 0, 1}, at::kShort)},
                           {"rows", at::ones({3, 5})}});
  const Dataset dataset = safetensors(path);
  EXPECT_EQ(dataset.x.sizes(), at::IntArrayRef({3, 2, 2}));
  EXPECT_TRUE(dataset.y.equal(at::tensor({4, 0, 1}, at::kLong)));
  EXPECT_EQ(dataset.classes, 5);
  EXPECT_TRUE(safetensors(path, {.x = "rows", .classes = 7}).x.equal(at::ones({3, 5})));
  EXPECT_ERROR(safetensors(path, {.y = "targets"}), DataError,
               path.string() + ": has no tensor \"targets\" among its 3. Say which two to take");
  EXPECT_ERROR(safetensors(path, {.y = "rows"}), DataError, path.string() + ": tensor \"rows\": holds Float");
  EXPECT_ERROR(safetensors(path, {.classes = 4}), DataError, "label 4 at row 0 is outside of the 4 classes");
  EXPECT_ERROR(safetensors(path, {.classes = -1}), InvalidArgument, "-1 classes");
}

}  // namespace safetensors_test
}  // namespace brigade::data
