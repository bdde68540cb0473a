// PNG by libpng's simplified interface, which needs no setjmp.
#include <fmt/format.h>
#include <png.h>

#include "data/errors.h"
#include "data/image_decoder.h"

namespace brigade::data {
namespace {

class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  png_image* operator->() { return &image_; }
  png_image* get() { return &image_; }

 private:
  png_image image_ = {};
};

[[noreturn]] void damaged(const std::string& file, const PngImage&, const char* message) {
  refuse(file, fmt::format("is a damaged PNG file: {}. Fetch it again, or take it out of the folder.", message));
}

// In place: every third byte of `pixels` on from its front.
void keep_grey(std::vector<std::byte>& pixels) {
  const auto at = [&pixels](std::size_t i) { return std::to_integer<unsigned>(pixels[i]); };
  for (std::size_t i = 0; i < pixels.size() / 3; ++i) {
    // The weights of Color::kGrey in 65536ths, which libjpeg has as well.
    const unsigned grey = (19595 * at(3 * i) + 38470 * at(3 * i + 1) + 7471 * at(3 * i + 2) + 32768) >> 16;
    pixels[i] = static_cast<std::byte>(grey);
  }
  pixels.resize(pixels.size() / 3);
}

}  // namespace

Image decode_png(const std::string& file, std::span<const std::byte> bytes, ImageRequest request) {
  PngImage png;
  if (png_image_begin_read_from_memory(png.get(), bytes.data(), bytes.size()) == 0) damaged(file, png, png->message);
  check_size(file, png->height, png->width, request.max_pixels);
  const bool stored_grey = (png->format & PNG_FORMAT_FLAG_COLOR) == 0;
  const bool as_grey = stored_grey && request.color == Color::kGrey;
  png->format = as_grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as every program takes 16 bits that say nothing else
  Image image{.height = png->height, .width = png->width, .channels = request.color == Color::kGrey ? 1 : 3};
  image.pixels.resize(std::size_t{png->height} * png->width * (as_grey ? 1 : 3));
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(png.get(), &black, image.pixels.data(), 0, nullptr) == 0) damaged(file, png, png->message);
  if (request.color == Color::kGrey && !as_grey) keep_grey(image.pixels);
  return image;
}

}  // namespace brigade::data
