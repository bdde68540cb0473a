#include "brigade/base/digest.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/digest_kernels.h"

namespace brigade {
namespace digest_test {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Values that xxhsum prints (xxhsum -H3).
TEST(Digest, IsXxh3) {
  EXPECT_EQ(digest_of({}), 0x2d06800538d394c2u);
  EXPECT_EQ(digest_of(bytes_of("a")), 0xe6c632b61e964e1fu);
  EXPECT_EQ(digest_of(bytes_of("abc")), 0x78af5f94892f3950u);
}

TEST(Digest, DoesNotDependOnHowBytesAreCut) {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  for (const std::size_t piece : {1u, 7u, 240u, 256u, 1024u, 4999u, 5000u}) {
    Digest digest;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      digest.add(std::span(bytes).subspan(begin, std::min(piece, bytes.size() - begin)));
      digest.add({});
    }
    EXPECT_EQ(digest.value(), digest_of(bytes)) << "pieces of " << piece;
  }
}

TEST(Digest, IsTheSameByEveryInstructionSet) {
#if defined(__x86_64__)
  std::vector<std::byte> bytes(20000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  for (const std::size_t size : {0u, 1u, 16u, 128u, 240u, 241u, 1024u, 16384u, 19999u}) {
    const std::uint64_t expected = digest_baseline(bytes.data(), size);
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_EQ(digest_avx2(bytes.data(), size), expected) << size;
    }
  }
#endif
}

TEST(Digest, ChangesWithEveryByte) {
  std::vector<std::byte> bytes(300);
  const std::uint64_t before = digest_of(bytes);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{1};
    EXPECT_NE(digest_of(bytes), before);
    byte ^= std::byte{1};
  }
}

}  // namespace digest_test
}  // namespace brigade
