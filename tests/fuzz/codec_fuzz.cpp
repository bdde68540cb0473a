// Any bytes at all, taken for a message of any codec, either end in a DataError that names the codec or give numbers; and taken for
// numbers, give a message that is one, and that says the same again.
//
// The first byte chooses the codec, the next three rows and columns; the rest is the message, or the numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/comm/compress/codecs.h"

namespace {

using namespace brigade;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::array<comm::Codec, 8>& codecs() {
  static const std::array<comm::Codec, 8> all = {compress::none(),
                                                 compress::fp16(),
                                                 compress::bf16(),
                                                 compress::int8({.block = 64}),
                                                 compress::onebit({.block = 64}),
                                                 compress::topk({.ratio = 0.25}),
                                                 compress::powersgd({.rank = 2}),
                                                 compress::error_feedback(compress::topk({.ratio = 0.5}))};
  return all;
}

// Spans of exactly their size, so that AddressSanitizer sees what goes beyond.
void check_message(const comm::Codec& codec, comm::Matrix shape, std::span<const std::byte> bytes) {
  const std::vector<std::byte> message(bytes.begin(), bytes.end());
  std::vector<float> out(shape.size());
  try {
    codec.decode(message, shape, out);
    require(message.size() == codec.encoded_bytes(shape));
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("the " + std::string(codec.name()) + " message is damaged: "));
  }
}

void check_numbers(const comm::Codec& codec, std::span<const std::byte> bytes) {
  std::vector<float> in(std::min<std::size_t>(bytes.size() / sizeof(float), 4096));
  if (!in.empty()) std::memcpy(in.data(), bytes.data(), in.size() * sizeof(float));
  const bool are_finite = std::all_of(in.begin(), in.end(), [](float x) { return std::isfinite(x); });
  // As square as they can be, so that they are a matrix.
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(in.size())));
  for (const comm::Matrix shape : {comm::Matrix(in.size()), comm::Matrix(side, side)}) {
    const std::span<const float> numbers = std::span(in).first(shape.size());
    const std::vector<float> state(codec.state_size(shape));
    std::vector<float> next(state.size());
    std::vector<std::byte> message(codec.encoded_bytes(shape));
    codec.encode(numbers, shape, {.key = {1, 2}, .state = state, .next_state = next}, message);
    std::vector<float> out(shape.size());
    codec.decode(message, shape, out);
    const bool is_finite_again = std::all_of(out.begin(), out.end(), [](float x) { return std::isfinite(x); });
    const bool numbers_are_finite =
        are_finite || std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
    // Finite numbers may overflow in the narrow formats and in products; none but finite ones come out finite.
    require(numbers_are_finite || !is_finite_again);
    if (numbers_are_finite && (codec.name() == "int8" || codec.name() == "onebit" || codec.name() == "topk")) {
      require(is_finite_again);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const comm::Codec& codec = codecs()[data[0] % codecs().size()];
  const comm::Matrix shape = {data[1], std::size_t{data[2]} + 256 * (data[3] % 4U)};
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(4);
  check_message(codec, shape, bytes);
  // And as much of it as such a message takes.
  check_message(codec, shape, bytes.first(std::min(bytes.size(), codec.encoded_bytes(shape))));
  check_numbers(codec, bytes);
  return 0;
}
