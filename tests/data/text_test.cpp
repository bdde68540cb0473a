#include "brigade/data/text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "brigade/data/loader.h"
#include "data/files.h"
#include "support/errors.h"

namespace brigade::data {
namespace text_test {

TEST(ReadText, JoinsFilesPlainAndPacked) {
  const TemporaryFolder folder;
  const torch::Tensor bytes = read_text(
      {folder.write_text("a", "ab\n"), folder.write("b", gzip(text_bytes("\xff"))), folder.write_text("c", "")});
  EXPECT_EQ(bytes.scalar_type(), at::kByte);
  EXPECT_TRUE(bytes.equal(at::tensor({97, 98, 10, 255}, at::kByte)));
  EXPECT_EQ(read_text({}).sizes(), at::IntArrayRef({0}));
}

TEST(ReadText, HoldsToItsLimitAndNamesTheFile) {
  const TemporaryFolder folder;
  const auto a = folder.write_text("a", "abc");
  const auto b = folder.write_text("b", "d");
  EXPECT_EQ(read_text({a, b}, 4).size(0), 4);
  EXPECT_ERROR(read_text({a, b}, 3), DataError, b.string() + ": exceeds the limit of 3 bytes");
  EXPECT_ERROR(text({a, folder.path() / "absent"}), DataError, "absent: there is no such file");
}

TEST(Sequences, AnswerEachByteWithTheNext) {
  const torch::Tensor bytes = at::arange(20, at::kByte);
  // 19 answers in rows of 6: three rows, and one byte is left.
  const Dataset dataset = sequences(bytes, 6);
  EXPECT_EQ(dataset.rows(), 3);
  EXPECT_EQ(dataset.classes, 256);
  EXPECT_TRUE(dataset.x.equal(at::arange(18, at::kByte).reshape({3, 6})));
  EXPECT_TRUE(dataset.y.equal(at::arange(1, 19, at::kByte).reshape({3, 6})));
  EXPECT_EQ(dataset.x.data_ptr(), bytes.data_ptr());
}

TEST(Sequences, LeaveOutATailShorterThanARow) {
  for (std::int64_t count = 7; count <= 30; ++count) {
    const Dataset dataset = sequences(at::arange(count, at::kByte), 6);
    const std::int64_t answered = dataset.y.numel();
    EXPECT_LE(answered, count - 1) << count;
    EXPECT_LT(count - 1 - answered, 6) << count;
    EXPECT_EQ(dataset.y.max().item<std::int64_t>(), answered) << count;
  }
}

TEST(Sequences, RefuseWhatCannotBeCut) {
  EXPECT_ERROR(sequences(at::arange(6, at::kByte), 6), DataError,
               "There are 6 bytes, where one row of 6 and its answers take 7");
  EXPECT_ERROR(sequences(at::empty({0}, at::kByte), 1), DataError, "There are 0 bytes");
  EXPECT_ERROR(sequences(at::arange(6, at::kByte), 0), InvalidArgument, "sequence is 0");
  EXPECT_ERROR(sequences(at::arange(6, at::kLong), 2), ShapeError, "uint8 tensor of one dimension");
  EXPECT_ERROR(sequences(at::zeros({2, 3}, at::kByte), 2), ShapeError, "uint8 tensor of one dimension");
  EXPECT_ERROR(sequences({}, 2), ShapeError, "uint8");
}

TEST(Text, IsWhatALoaderTakes) {
  const TemporaryFolder folder;
  const Dataset dataset = text({folder.write_text("a", "the quick brown fox")}, {.sequence = 4});
  EXPECT_EQ(dataset.rows(), 4);
  Loader loader(dataset, {.global_batch = 4, .shards = 2});
  const auto batch = loader.next();
  for (const Shard& shard : batch->shards) {
    EXPECT_EQ(shard.y.sizes(), at::IntArrayRef({2, 4}));
    EXPECT_EQ(shard.y.scalar_type(), at::kLong);
    EXPECT_TRUE(shard.y.narrow(1, 0, 3).equal(shard.x.narrow(1, 1, 3).to(at::kLong)));
  }
}

}  // namespace text_test
}  // namespace brigade::data
