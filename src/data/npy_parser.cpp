#include "data/npy_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "data/elements.h"
#include "data/errors.h"

namespace brigade::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 65536;  // bytes; numpy itself trusts none above 10,000
constexpr std::string_view kAdvice = "It is damaged, or no file of numpy.save; save it again.";

std::string_view kind_name(char kind) {
  switch (kind) {
    case 'u':
      return "unsigned integers";
    case 'c':
      return "complex numbers";
    case 'f':
      return "floating-point numbers";
    case 'S':
    case 'U':
      return "text";
    case 'M':
    case 'm':
      return "dates or spans of time";
    default:
      return "elements of an unknown type";
  }
}

// The header's few forms of Python: a dictionary of strings, a bool and a tuple of numbers.
class HeaderParser {
 public:
  HeaderParser(std::string_view file, std::string_view text) : file_(file), rest_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      field(key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (accept_raw('\n')) skip_spaces();
    if (!rest_.empty()) damaged("goes on behind its dictionary");
    if (!has_descr_ || !has_order_ || !has_shape_) damaged("lacks 'descr', 'fortran_order' or 'shape'");
    return header_;
  }

 private:
  [[noreturn]] void damaged(std::string_view problem) const {
    refuse(file_, fmt::format("its header {}. {}", problem, kAdvice));
  }

  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  bool accept_raw(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool accept(char c) {
    skip_spaces();
    return accept_raw(c);
  }

  void expect(char c) {
    if (!accept(c)) damaged(fmt::format("has no '{}' before {}", c, shown(rest_)));
  }

  std::string_view string() {
    skip_spaces();
    const char quote = rest_.starts_with('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) damaged("has a text without an end");
    const std::string_view text = rest_.substr(0, end);
    if (text.find('\\') != std::string_view::npos) damaged("has a backslash in a text");
    rest_.remove_prefix(end + 1);
    return text;
  }

  void field(std::string_view key) {
    if (key == "descr") {
      once(key, has_descr_);
      parse_descr();
    } else if (key == "fortran_order") {
      once(key, has_order_);
      parse_order();
    } else if (key == "shape") {
      once(key, has_shape_);
      parse_shape();
    } else {
      damaged(fmt::format("has the unknown key {}", shown(key)));
    }
  }

  void once(std::string_view key, bool& there) const {
    if (std::exchange(there, true)) damaged(fmt::format("has {} twice", shown(key)));
  }

  void parse_descr() {
    skip_spaces();
    if (rest_.starts_with('[')) {
      refuse(file_, "holds records of several fields. Save each field as an array of its own.");
    }
    const std::string_view text = string();
    const std::string_view type = text.empty() ? text : text.substr(1);
    if (type.starts_with('O')) {
      refuse(file_, "holds Python objects. They are not loaded, since that can run code; save numbers.");
    }
    constexpr std::array<std::pair<std::string_view, comm::DType>, 9> kTypes = {{{"b1", comm::DType::kBool},
                                                                                 {"u1", comm::DType::kUint8},
                                                                                 {"i1", comm::DType::kInt8},
                                                                                 {"i2", comm::DType::kInt16},
                                                                                 {"i4", comm::DType::kInt32},
                                                                                 {"i8", comm::DType::kInt64},
                                                                                 {"f2", comm::DType::kFloat16},
                                                                                 {"f4", comm::DType::kFloat32},
                                                                                 {"f8", comm::DType::kFloat64}}};
    const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [type](const auto& t) { return t.first == type; });
    // A single byte has no order, which '|' says.
    const bool known_order =
        text.starts_with('<') || text.starts_with('>') || (text.starts_with('|') && type.ends_with('1'));
    if (found == kTypes.end() || !known_order) {
      refuse(file_,
             fmt::format("holds {} (descr {}), which are not read here: bool, uint8, int8 to int64 and float16 to "
                         "float64 are. Convert them with astype before saving.",
                         kind_name(type.empty() ? '?' : type.front()), shown(text)));
    }
    header_.dtype = found->second;
    header_.byte_order = text.starts_with('>') ? ByteOrder::kBig : ByteOrder::kLittle;
  }

  void parse_order() {
    skip_spaces();
    constexpr std::string_view kTrue = "True";
    constexpr std::string_view kFalse = "False";
    if (rest_.starts_with(kTrue)) {
      rest_.remove_prefix(kTrue.size());
      header_.axis_order = AxisOrder::kFirstFastest;
    } else if (rest_.starts_with(kFalse)) {
      rest_.remove_prefix(kFalse.size());
    } else {
      damaged(fmt::format("has a 'fortran_order' that is neither True nor False, but {}", shown(rest_)));
    }
  }

  void parse_shape() {
    expect('(');
    bool separated = true;
    while (!accept(')')) {
      if (!separated) damaged("has neither a comma nor a bracket behind a dimension");
      if (header_.sizes.size() == kMaxRank) damaged(fmt::format("has more than {} dimensions", kMaxRank));
      header_.sizes.push_back(number());
      separated = accept(',');
    }
    // (3) is a number in Python, and no tuple.
    if (header_.sizes.size() == 1 && !separated) damaged("has a shape that is no tuple");
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) {
      damaged(fmt::format("has a dimension that is no whole number from 0 to 2^63 - 1: {}", shown(rest_)));
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view file_;
  std::string_view rest_;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

// Reads `out` in full.
void read_start(ByteSource& source, std::span<std::byte> out) {
  if (source.read(out) < out.size()) refuse(source.name(), fmt::format("ends within its header. {}", kAdvice));
}

std::string read_header_text(ByteSource& source) {
  std::array<std::byte, 8> start = {};
  const std::size_t count = source.read(start);
  const std::string_view magic(reinterpret_cast<const char*>(start.data()), std::min(count, kMagic.size()));
  if (magic != kMagic) {
    refuse(source.name(),
           "does not begin with \\x93NUMPY. Give a file of numpy.save; an archive (.npz) holds several, "
           "unpack it.");
  }
  const int version = std::to_integer<int>(start[6]);
  if (count < start.size() || version < 1 || version > 3 || start[7] != std::byte{0}) {
    refuse(source.name(), fmt::format("has the version {}.{} of its format, where 1.0, 2.0 and 3.0 are read. {}",
                                      version, std::to_integer<int>(start[7]), kAdvice));
  }
  std::array<std::byte, 4> raw = {};
  read_start(source, std::span(raw).first(version == 1 ? 2 : 4));
  std::size_t size = 0;
  for (std::size_t i = raw.size(); i-- > 0;) size = size << 8 | std::to_integer<std::size_t>(raw[i]);
  if (size > kMaxHeader) {
    refuse(source.name(),
           fmt::format("announces a header of {} bytes, above the limit of {}. {}", size, kMaxHeader, kAdvice));
  }
  std::string text(size, '\0');
  read_start(source, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

NpyHeader read_npy_header(ByteSource& source, std::uint64_t max_bytes) {
  const std::string text = read_header_text(source);
  NpyHeader header = HeaderParser(source.name(), text).parse();
  const auto bytes = byte_count(header.dtype, header.sizes);
  const std::string announced = fmt::format("{} elements of {}", fmt::join(header.sizes, " x "), name_of(header.dtype));
  if (!bytes || *bytes > max_bytes) {
    refuse(source.name(), fmt::format("announces {}, above the limit of {} bytes. Raise max_bytes if that is what it "
                                      "should hold; otherwise its header is damaged.",
                                      announced, max_bytes));
  }
  if (*bytes != source.at_most()) {
    refuse(source.name(),
           fmt::format("announces {}, {} bytes, but {} follow. It is cut short, or something was appended; "
                       "save it again.",
                       announced, *bytes, source.at_most()));
  }
  header.bytes = *bytes;
  return header;
}

void read_npy_data(ByteSource& source, const NpyHeader& header, std::span<std::byte> out) {
  std::array<std::byte, 1> extra = {};
  if (source.read(out) < out.size() || source.read(extra) != 0) {
    refuse(source.name(), "is not as long as it was. Was it changed while it was read?");
  }
  if (header.byte_order == ByteOrder::kBig) swap_byte_order(out, size_of(header.dtype));
  if (header.dtype != comm::DType::kBool) return;
  if (const std::size_t bad = first_bad_bool(out); bad < out.size()) {
    refuse(source.name(), fmt::format("its bool number {} is {}, neither 0 nor 1. It is damaged; save it again.", bad,
                                      std::to_integer<int>(out[bad])));
  }
}

}  // namespace brigade::data
