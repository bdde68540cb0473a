// Any bytes at all, taken for a checkpoint's manifest and for its state: either a DataError that names them, or what is written
// again is the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "brigade/base/error.h"
#include "guard/manifest.h"
#include "guard/state.h"

namespace {

using namespace brigade;
using namespace brigade::guard;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class F>
void expect_refusal_or(F f) {
  try {
    f();
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
  }
}

void check_state(const nlohmann::json& state) {
  std::string text;
  try {
    text = to_text(state);
  } catch (const InvalidArgument&) {
    return;  // with its white space it is too long
  }
  require(parse_state("input", text) == state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_refusal_or([&] { require(to_text(parse_manifest("input", text)) == text); });
  expect_refusal_or([&] { check_state(parse_state("input", text)); });
  return 0;
}
