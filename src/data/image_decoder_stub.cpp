// In place of the decoders, where Brigade is built without them.
#include "data/errors.h"
#include "data/image_decoder.h"

namespace brigade::data {
namespace {

[[noreturn]] void absent(const std::string& file) {
  refuse(file,
         "images cannot be read: Brigade was built with -DBRIGADE_WITH_IMAGES=OFF. Build it with ON, which needs "
         "libpng and libjpeg-turbo (on Debian: apt-get install libpng-dev libjpeg62-turbo-dev).");
}

}  // namespace

Image decode_png(const std::string& file, std::span<const std::byte> /*bytes*/, ImageRequest /*request*/) {
  absent(file);
}
Image decode_jpeg(const std::string& file, std::span<const std::byte> /*bytes*/, ImageRequest /*request*/) {
  absent(file);
}

}  // namespace brigade::data
