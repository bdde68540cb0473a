// JPEG by libjpeg. It reports errors by a function that must not return, so each call into it stands in a function of its
// own that longjmp may leave: nothing in there has a destructor.
#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it before
//
#include <jpeglib.h>

#include "data/errors.h"
#include "data/image_decoder.h"

namespace brigade::data {
namespace {

constexpr int kMaxScans =
    100;  // of a progressive file; programs write about ten, and each costs a pass over the pixels

class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { self(info).leave(); };
    // Warnings are about damage as well, which libjpeg fills in with grey.
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) self(info).leave();
    };
    errors_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
  }
  ~JpegReader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  const jpeg_decompress_struct& info() const { return info_; }
  const char* message() const { return message_.data(); }

  // Each returns whether all went well; else message() says what did not.
  bool read_header(std::span<const std::byte> bytes) {
    if (setjmp(escape_) != 0) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    progress_.progress_monitor = [](j_common_ptr info) { self(info).watch_scans(); };
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    return jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
  }

  bool start(J_COLOR_SPACE color) {
    if (setjmp(escape_) != 0) return false;
    info_.out_color_space = color;
    info_.dct_method = JDCT_ISLOW;  // whole numbers: the same pixels on every processor
    return jpeg_start_decompress(&info_) == TRUE;
  }

  // `out` takes all rows.
  bool read_rows(std::byte* out, std::size_t row_bytes) {
    if (setjmp(escape_) != 0) return false;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = reinterpret_cast<JSAMPROW>(out) + info_.output_scanline * row_bytes;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    return jpeg_finish_decompress(&info_) == TRUE;
  }

 private:
  static JpegReader& self(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

  [[noreturn]] void leave() {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), message_.data());
    std::longjmp(escape_, 1);
  }

  void watch_scans() {
    if (info_.input_scan_number <= kMaxScans) return;
    std::snprintf(message_.data(), message_.size(), "more than %d scans", kMaxScans);
    std::longjmp(escape_, 1);
  }

  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf escape_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {};
  bool created_ = false;
};

[[noreturn]] void damaged(const std::string& file, const JpegReader& reader) {
  refuse(file,
         fmt::format("is a damaged JPEG file: {}. Fetch it again, or take it out of the folder.", reader.message()));
}

}  // namespace

Image decode_jpeg(const std::string& file, std::span<const std::byte> bytes, ImageRequest request) {
  JpegReader reader;
  if (!reader.read_header(bytes)) damaged(file, reader);
  const jpeg_decompress_struct& info = reader.info();
  check_size(file, info.image_height, info.image_width, request.max_pixels);
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
    refuse(file, "is a JPEG file in the colours of print (CMYK). Convert it to RGB.");
  }
  if (!reader.start(request.color == Color::kGrey ? JCS_GRAYSCALE : JCS_RGB)) damaged(file, reader);
  Image image{.height = info.output_height, .width = info.output_width, .channels = info.output_components};
  const std::size_t row_bytes = std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
  image.pixels.resize(row_bytes * info.output_height);
  if (!reader.read_rows(image.pixels.data(), row_bytes)) damaged(file, reader);
  return image;
}

}  // namespace brigade::data
