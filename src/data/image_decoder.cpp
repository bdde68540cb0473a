#include "data/image_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/errors.h"

namespace brigade::data {
namespace {

constexpr std::array<std::byte, 4> kPng = {std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}};
constexpr std::array<std::byte, 3> kJpeg = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};

template <std::size_t N>
bool starts_with(std::span<const std::byte> bytes, const std::array<std::byte, N>& magic) {
  return bytes.size() >= N && std::ranges::equal(bytes.first(N), magic);
}

}  // namespace

Image decode_image(const std::string& file, std::span<const std::byte> bytes, ImageRequest request) {
  if (starts_with(bytes, kPng)) return decode_png(file, bytes, request);
  if (starts_with(bytes, kJpeg)) return decode_jpeg(file, bytes, request);
  refuse(file, "is neither a PNG nor a JPEG file. Convert it, or take it out of the folder.");
}

void check_size(const std::string& file, std::uint64_t height, std::uint64_t width, std::uint64_t max_pixels) {
  // Either side is below 2^32.
  if (height * width <= max_pixels) return;
  refuse(file, fmt::format("is an image of {} x {}, above the limit of {} pixels. Raise max_pixels if it should be.",
                           height, width, max_pixels));
}

}  // namespace brigade::data
