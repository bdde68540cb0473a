// Any bytes at all either end in a DataError that names them, or are an image of as many pixels as its size says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "brigade/base/error.h"
#include "data/image_decoder.h"

namespace {

using namespace brigade;
using namespace brigade::data;

constexpr std::uint64_t kMaxPixels = 1 << 16;

void require(bool condition) {
  if (!condition) std::abort();
}

void decode(std::span<const std::byte> bytes, Color color) {
  try {
    const Image image = decode_image("input", bytes, {.color = color, .max_pixels = kMaxPixels});
    require(image.height > 0 && image.width > 0 && image.channels == (color == Color::kGrey ? 1 : 3));
    require(static_cast<std::uint64_t>(image.height * image.width) <= kMaxPixels);
    require(static_cast<std::int64_t>(image.pixels.size()) == image.height * image.width * image.channels);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  decode(bytes, Color::kRgb);
  decode(bytes, Color::kGrey);
  return 0;
}
