#include "data/image_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>  // jpeglib.h needs it before
#include <cstdlib>
//
#include <jpeglib.h>

#include "brigade/base/error.h"
#include "data/npy_parser.h"
#include "data/replay.h"
#include "support/case_files.h"
#include "support/errors.h"

extern "C" int fuzz_image(const std::uint8_t* data, std::size_t size);

namespace brigade::data {
namespace image_decoder_test {

const std::filesystem::path kRecorded = cases::own_path("images");
constexpr std::uint64_t kLimit = 1 << 20;

Image decode(const std::string& name, Color color, std::uint64_t max_pixels = kLimit) {
  return decode_image(name, read_file(kRecorded / name), {.color = color, .max_pixels = max_pixels});
}

// What Pillow has as the pixels of NAME, in NAME.npy.
Image expected(const std::string& name) {
  FileSource source(kRecorded / (name + ".npy"));
  const NpyHeader header = read_npy_header(source, kLimit);
  Image image{.height = header.sizes.at(0), .width = header.sizes.at(1), .channels = header.sizes.at(2)};
  image.pixels.resize(header.bytes);
  read_npy_data(source, header, image.pixels);
  return image;
}

void expect_near(const Image& actual, const Image& wanted, int tolerance) {
  EXPECT_EQ(actual.height, wanted.height);
  EXPECT_EQ(actual.width, wanted.width);
  EXPECT_EQ(actual.channels, wanted.channels);
  ASSERT_EQ(actual.pixels.size(), wanted.pixels.size());
  int largest = 0;
  for (std::size_t i = 0; i < wanted.pixels.size(); ++i) {
    largest =
        std::max(largest, std::abs(std::to_integer<int>(actual.pixels[i]) - std::to_integer<int>(wanted.pixels[i])));
  }
  EXPECT_LE(largest, tolerance);
}

// A grey image as one of three channels.
Image in_all_channels(const Image& grey) {
  Image image{.height = grey.height, .width = grey.width, .channels = 3};
  for (const std::byte pixel : grey.pixels) image.pixels.insert(image.pixels.end(), 3, pixel);
  return image;
}

TEST(ImageDecoder, ReadsPngFilesAsPillowDoes) {
  for (const std::string name : {"rgb", "palette", "alpha"}) {
    SCOPED_TRACE(name);
    expect_near(decode(name + ".png", Color::kRgb), expected(name), 0);
  }
  for (const std::string name : {"grey", "one_bit", "sixteen_bits"}) {
    SCOPED_TRACE(name);
    expect_near(decode(name + ".png", Color::kGrey), expected(name), 0);
    expect_near(decode(name + ".png", Color::kRgb), in_all_channels(expected(name)), 0);
  }
  expect_near(decode("grey_of_rgb.png", Color::kGrey), expected("grey_of_rgb"), 0);
}

// Decoders of JPEG may differ by a little where they round.
TEST(ImageDecoder, ReadsJpegFilesAsPillowDoes) {
  for (const std::string name : {"colour", "progressive"}) {
    SCOPED_TRACE(name);
    expect_near(decode(name + ".jpg", Color::kRgb), expected(name), 2);
  }
  expect_near(decode("grey_of_colour.jpg", Color::kGrey), expected("grey_of_colour"), 2);
  expect_near(decode("grey_jpeg.jpg", Color::kGrey), expected("grey_jpeg"), 2);
  expect_near(decode("grey_jpeg.jpg", Color::kRgb), in_all_channels(expected("grey_jpeg")), 2);
}

TEST(ImageDecoder, RefusesOtherFormats) {
  expect_error<DataError>([] { decode_image("a.gif", text_bytes("GIF89a..."), {.max_pixels = 1}); },
                          {"a.gif: is neither a PNG nor a JPEG file"});
  expect_error<DataError>([] { decode_image("a", {}, {.max_pixels = 1}); }, {"a: is neither"});
  expect_error<DataError>([] { decode("refused_cmyk.jpg", Color::kRgb); },
                          {"refused_cmyk.jpg: is a JPEG file in the colours of print (CMYK)"});
}

TEST(ImageDecoder, RefusesMorePixelsThanTheLimitBeforeItDecodes) {
  for (const std::string name : {"rgb.png", "colour.jpg"}) {
    EXPECT_EQ(decode(name, Color::kRgb, 12 * 17).height, 12);
    expect_error<DataError>([&] { decode(name, Color::kRgb, 12 * 17 - 1); },
                            {name + ": is an image of 12 x 17, above the limit of 203 pixels", "max_pixels"});
  }
  // A frame of some 64,000 pixels a side: FF C0, two bytes of length, one of precision, then height and width.
  Bytes jpeg = read_file(kRecorded / "colour.jpg");
  const Bytes marker = {std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), marker.begin(), marker.end());
  ASSERT_NE(frame, jpeg.end());
  frame[5] = frame[7] = std::byte{0xFA};
  expect_error<DataError>([&] { decode_image("huge.jpg", jpeg, {.max_pixels = kLimit}); },
                          {"huge.jpg: is an image of 64012 x 64017, above the limit"});
}

TEST(ImageDecoder, RefusesEveryTruncation) {
  for (const std::string name : {"rgb.png", "grey.png", "colour.jpg", "progressive.jpg"}) {
    const Bytes file = read_file(kRecorded / name);
    // The last bytes of either say that nothing follows; libpng wants none of its own after the pixels.
    const std::size_t end = file.size() - (name.ends_with("png") ? 12 : 2);
    for (std::size_t size = 4; size < end; ++size) {
      const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      expect_error<DataError>([&] { decode_image(name, part, {.max_pixels = kLimit}); }, {name + ": is a damaged "});
    }
  }
}

// 8 x 8 pixels in as many scans as asked for, 1 to 190: the means, then each coefficient of a channel by itself.
Bytes jpeg_of_scans(int count) {
  std::vector<jpeg_scan_info> scans(static_cast<std::size_t>(count));
  scans[0] = {3, {0, 1, 2}, 0, 0, 0, 0};
  for (int i = 1; i < count; ++i) {
    const int coefficient = (i - 1) % 63 + 1;
    scans[static_cast<std::size_t>(i)] = {1, {(i - 1) / 63}, coefficient, coefficient, 0, 0};
  }
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = info.image_height = 8;
  info.input_components = 3;
  info.in_color_space = JCS_YCbCr;
  jpeg_set_defaults(&info);
  info.scan_info = scans.data();
  info.num_scans = count;
  jpeg_start_compress(&info, TRUE);
  JSAMPLE row[24] = {10, 200, 30, 40};
  JSAMPROW rows[] = {row};
  while (info.next_scanline < 8) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const Bytes file = text_bytes({reinterpret_cast<const char*>(data), size});
  std::free(data);
  return file;
}

// Each scan takes a pass over all pixels, however few bytes it has.
TEST(ImageDecoder, RefusesProgressiveFilesOfTooManyScans) {
  EXPECT_EQ(decode_image("many.jpg", jpeg_of_scans(100), {.max_pixels = kLimit}).height, 8);
  expect_error<DataError>([] { decode_image("bomb.jpg", jpeg_of_scans(101), {.max_pixels = kLimit}); },
                          {"bomb.jpg: is a damaged JPEG file: more than 100 scans"});
}

TEST(ImageReplay, HoldsForRecordedFilesTheirTruncationsAndTheirByteChanges) { replay_corpus(fuzz_image, kRecorded); }

}  // namespace image_decoder_test
}  // namespace brigade::data
