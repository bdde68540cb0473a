// The JSON at the head of a safetensors file. nlohmann's parser validates JSON and UTF-8 and hands over one token after
// another, so that nothing is built of what does not belong there, and names that occur twice can be seen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "data/elements.h"
#include "data/errors.h"
#include "data/safetensors_format.h"

namespace brigade::data {
namespace {

constexpr std::string_view kAdvice = "The file is damaged, or its writer is faulty: fetch or write it again.";
constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

// The values that may come next.
enum class Place {
  kStart,     // the whole
  kTop,       // descriptions of tensors, and the metadata
  kEntry,     // the fields of a tensor
  kShape,     // numbers
  kOffsets,   // numbers
  kMetadata,  // strings
};

// The interface that nlohmann::json::sax_parse calls. All its functions return true: what does not belong is thrown.
class HeaderParser {
 public:
  using json = nlohmann::json;

  explicit HeaderParser(std::string_view file) : file_(file) {}

  SafeTensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t /*elements*/) {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = in_metadata_ ? Place::kMetadata : Place::kEntry;
      seen_ = {};
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::kTop) {
      start_value(name);
    } else if (place_ == Place::kEntry) {
      start_field(name);
    } else {
      metadata_key_ = name;
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::kEntry) finish_entry();
    place_ = Place::kTop;
    return true;
  }

  bool start_array(std::size_t /*elements*/) {
    if (place_ != Place::kEntry || field_ == 0) unexpected("an array");
    place_ = field_ == 1 ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() {
    if (place_ == Place::kOffsets && offsets_ != 2) wrong_offset_count();
    place_ = Place::kEntry;
    return true;
  }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::kShape) {
      add_size(value);
    } else if (place_ == Place::kOffsets) {
      add_offset(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::kMetadata) {
      add_metadata(text);
    } else if (place_ == Place::kEntry && field_ == 0) {
      set_dtype(text);
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool null() { unexpected("null"); }
  bool boolean(bool /*value*/) { unexpected("true or false"); }
  bool binary(json::binary_t& /*value*/) { unexpected("bytes"); }  // never in JSON
  bool number_integer(std::int64_t /*value*/) { unexpected("a negative number"); }
  // Numbers of 2^64 and more come as such, too.
  bool number_float(double /*value*/, const std::string& /*text*/) { unexpected("a fraction or a number too large"); }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& /*error*/) {
    refuse(file_, fmt::format("its header is no JSON in UTF-8 from byte {} on. {}", position, kAdvice));
  }

 private:
  [[noreturn]] void damaged(std::string_view problem) const {
    refuse(file_, fmt::format("its header has for {} {}. {}", subject(), problem, kAdvice));
  }

  std::string subject() const {
    return in_metadata_ ? fmt::format("\"{}\"", kSafeTensorsMetadata) : fmt::format("tensor {}", shown(entry().name));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    switch (place_) {
      case Place::kTop:
        damaged(fmt::format("{}, where an object belongs", what));
      case Place::kEntry:
        damaged(fmt::format("{} as its \"{}\", where {} belongs", what, kFields[field_],
                            field_ == 0 ? "a string" : "an array"));
      case Place::kShape:
      case Place::kOffsets:
        damaged(fmt::format("{} in its \"{}\", where whole numbers from 0 on belong", what, kFields[field_]));
      case Place::kMetadata:
        damaged(fmt::format("{} as its {}, where a string belongs", what, shown(metadata_key_)));
      case Place::kStart:
        break;  // the text begins with a brace
    }
    refuse(file_, fmt::format("its header is {}. {}", what, kAdvice));
  }

  SafeTensorsEntry& entry() { return header_.entries.back(); }
  const SafeTensorsEntry& entry() const { return header_.entries.back(); }

  void start_value(const std::string& name) {
    in_metadata_ = name == kSafeTensorsMetadata;
    if (in_metadata_) {
      if (std::exchange(seen_metadata_, true)) damaged("two objects");
      return;
    }
    header_.entries.push_back({.name = name});
    if (const auto problem = safetensors_name_problem(name)) {
      refuse(file_, fmt::format("its header has a tensor {}, whose name {}. {}", shown(name), *problem, kAdvice));
    }
  }

  void start_field(const std::string& name) {
    const auto* found = std::find(kFields.begin(), kFields.end(), name);
    if (found == kFields.end()) {
      damaged(fmt::format("its {}, which is no field of this format: {}", shown(name), fmt::join(kFields, ", ")));
    }
    field_ = static_cast<std::size_t>(found - kFields.begin());
    if (std::exchange(seen_[field_], true)) damaged(fmt::format("its \"{}\" twice", name));
    offsets_ = 0;
  }

  void set_dtype(const std::string& name) {
    const auto dtype = safetensors_dtype(name);
    if (!dtype) {
      refuse(file_, fmt::format("{} has the dtype {}, which is not read here: BOOL, U8, I8, I16, I32, I64, F16, BF16, "
                                "F32 and F64 are. Write it with one of these.",
                                subject(), shown(name)));
    }
    entry().dtype = *dtype;
  }

  void add_size(std::uint64_t size) {
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      damaged(fmt::format("the dimension {}, above 2^63 - 1", size));
    }
    if (entry().sizes.size() == kMaxRank) {
      damaged(fmt::format("more than {} dimensions", kMaxRank));
    }
    entry().sizes.push_back(static_cast<std::int64_t>(size));
  }

  void add_offset(std::uint64_t offset) {
    if (offsets_ == 2) wrong_offset_count();
    (offsets_ == 0 ? entry().begin : entry().end) = offset;
    ++offsets_;
  }

  [[noreturn]] void wrong_offset_count() const { damaged("other than two \"data_offsets\", a begin and an end"); }

  void add_metadata(std::string& text) {
    if (header_.metadata.size() == kSafeTensorsMaxMetadata) {
      damaged(fmt::format("more than {} entries", kSafeTensorsMaxMetadata));
    }
    if (!header_.metadata.try_emplace(metadata_key_, std::move(text)).second) {
      damaged(fmt::format("{} twice", shown(metadata_key_)));
    }
  }

  void finish_entry() const {
    for (std::size_t field = 0; field < kFields.size(); ++field) {
      if (!seen_[field]) damaged(fmt::format("no \"{}\"", kFields[field]));
    }
    const SafeTensorsEntry& e = entry();
    const auto bytes = byte_count(e.dtype, e.sizes);
    if (!bytes) damaged(fmt::format("the shape [{}], which is too large", fmt::join(e.sizes, ", ")));
    if (e.begin > e.end || e.end - e.begin != *bytes) {
      damaged(fmt::format("the data_offsets [{}, {}], where [{}] of {} takes {} bytes", e.begin, e.end,
                          fmt::join(e.sizes, ", "), name_of(e.dtype), *bytes));
    }
  }

  std::string_view file_;
  SafeTensorsHeader header_;
  Place place_ = Place::kStart;
  bool in_metadata_ = false;  // the name at the top is that of the metadata
  bool seen_metadata_ = false;
  std::array<bool, kFields.size()> seen_ = {};  // fields of the tensor
  std::size_t field_ = 0;                       // of kFields
  std::size_t offsets_ = 0;                     // of the tensor, so far
  std::string metadata_key_;
};

// Two spellings in JSON of one name are one name by now.
void check_names_differ(std::string_view file, const std::vector<SafeTensorsEntry>& entries) {
  std::vector<std::string_view> names(entries.size());
  std::transform(entries.begin(), entries.end(), names.begin(),
                 [](const SafeTensorsEntry& e) -> std::string_view { return e.name; });
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    refuse(file, fmt::format("its header has tensor {} twice. {}", shown(*twice), kAdvice));
  }
}

// Puts the entries in the order of their bytes, which must leave no hole and not overlap. Returns the end of the last.
std::uint64_t check_tiling(std::string_view file, std::vector<SafeTensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const SafeTensorsEntry& a, const SafeTensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t end = 0;
  for (const SafeTensorsEntry& entry : entries) {
    if (entry.begin != end) {
      refuse(file, fmt::format("the bytes of tensor {} begin at {} of the data, where those before them end at {}. {}",
                               shown(entry.name), entry.begin, end, kAdvice));
    }
    end = entry.end;
  }
  return end;
}

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view file, std::string_view json) {
  const std::string_view text = json.substr(0, json.find_last_not_of(' ') + 1);
  // nlohmann takes a zero byte for the end, whatever follows.
  if (!text.starts_with('{') || !text.ends_with('}') || text.find('\0') != std::string_view::npos) {
    refuse(file, fmt::format("its header is no JSON object with nothing but spaces behind it. {}", kAdvice));
  }
  HeaderParser parser(file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &parser);
  SafeTensorsHeader header = parser.take();
  check_names_differ(file, header.entries);
  header.data_bytes = check_tiling(file, header.entries);
  return header;
}

}  // namespace brigade::data
