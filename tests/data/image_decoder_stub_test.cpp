// Built without images.
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "data/files.h"
#include "data/image_decoder.h"
#include "support/case_files.h"
#include "support/errors.h"

namespace brigade::data {
namespace image_decoder_stub_test {

TEST(ImageDecoderStub, SaysHowToBuildWithImages) {
  for (const std::string name : {"rgb.png", "colour.jpg"}) {
    const Bytes file = read_file(cases::own_path("images/" + name));
    expect_error<DataError>([&] { decode_image(name, file, {.max_pixels = 1000}); },
                            {name + ": images cannot be read", "-DBRIGADE_WITH_IMAGES=OFF", "libpng-dev"});
  }
}

}  // namespace image_decoder_stub_test
}  // namespace brigade::data
