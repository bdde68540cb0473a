// PNG and JPEG files as pixels, without torch.
//
// libpng and libjpeg-turbo decode: what distributions and browsers ship and keep patched against hostile files. stb_image
// would be smaller, but advises against files that one does not trust, and gdk-pixbuf brings GLib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "brigade/data/color.h"

namespace brigade::data {

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;           // 3 or 1
  std::vector<std::byte> pixels = {};  // [height, width, channels]
};

struct ImageRequest {
  Color color = Color::kRgb;
  std::uint64_t max_pixels = 0;  // height x width; more is refused before memory is asked for
};

// `bytes` hold a PNG or a JPEG file, which their first bytes tell apart. Throws DataError that begins with `file` for
// others, for damaged ones and for more pixels than asked for; also, saying so, when Brigade was built without images.
Image decode_image(const std::string& file, std::span<const std::byte> bytes, ImageRequest request);

// Their two halves, for files that are known to be such.
Image decode_png(const std::string& file, std::span<const std::byte> bytes, ImageRequest request);
Image decode_jpeg(const std::string& file, std::span<const std::byte> bytes, ImageRequest request);

// What every decoder asks once it knows the size.
void check_size(const std::string& file, std::uint64_t height, std::uint64_t width, std::uint64_t max_pixels);

}  // namespace brigade::data
