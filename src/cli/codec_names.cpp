#include "codec_names.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "brigade/base/error.h"
#include "brigade/comm/compress/codecs.h"
#include "choice.h"

namespace brigade::cli {
namespace {

// What follows the colon of "topk:0.01"; nothing where there is none.
template <class Number>
std::optional<Number> parameter_of(const std::string& text, std::size_t colon, const char* meaning) {
  if (colon == std::string::npos) return std::nullopt;
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error == std::errc{} && stop == end) return number;
  throw InvalidArgument(fmt::format("--compress {}: what follows the colon is {}", text, meaning));
}

}  // namespace

std::string codec_list() { return "none, fp16, bf16, int8, onebit, topk:RATIO, powersgd:RANK"; }

comm::Codec codec_named(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  switch (chosen("codec", name, {"none", "fp16", "bf16", "int8", "onebit", "topk", "powersgd"})) {
    case 5:
      return compress::topk({.ratio = parameter_of<double>(text, colon, "the share that is sent, such as 0.01")
                                          .value_or(compress::TopKOptions().ratio)});
    case 6:
      return compress::powersgd({.rank = parameter_of<std::size_t>(text, colon, "the rank, such as 4")
                                             .value_or(compress::PowerSgdOptions().rank)});
    default:
      break;
  }
  if (colon != std::string::npos) throw InvalidArgument(fmt::format("--compress {}: {} takes no number", text, name));
  if (name == "fp16") return compress::fp16();
  if (name == "bf16") return compress::bf16();
  if (name == "int8") return compress::int8();
  return name == "onebit" ? compress::onebit() : comm::Codec();
}

}  // namespace brigade::cli
