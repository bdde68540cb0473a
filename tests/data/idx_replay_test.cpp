// What the fuzzer checks, on its corpus and on every truncation and every change of one byte of it.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/idx_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace {

void replay(const Bytes& bytes, std::size_t size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read behind its end.
  const Bytes exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(exact.data()), exact.size());
}

TEST(IdxReplay, HoldsForTheCorpusItsTruncationsAndItsByteChanges) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BRIGADE_FUZZ_CORPUS "/idx")) {
    Bytes bytes = read_file(entry.path());
    ++files;
    for (std::size_t size = 0; size <= bytes.size(); ++size) replay(bytes, size);
    for (std::byte& byte : bytes) {
      for (const int change : {0x01, 0x80, 0xff}) {
        byte ^= static_cast<std::byte>(change);
        replay(bytes, bytes.size());
        byte ^= static_cast<std::byte>(change);
      }
    }
  }
  EXPECT_GE(files, 6);
}

}  // namespace
}  // namespace brigade::data
