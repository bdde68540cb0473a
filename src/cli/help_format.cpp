#include "help_format.h"

#include <sstream>
#include <string>

namespace brigade::cli {
namespace {

constexpr std::size_t kNameColumns = 26;
constexpr std::size_t kColumns = 100;

std::string wrapped(const std::string& text, std::size_t columns) {
  std::istringstream words(text);
  std::string lines;
  std::size_t used = 0;
  for (std::string word; words >> word; used += word.size()) {
    if (used > 0) {
      const bool fits = used + 1 + word.size() <= columns;
      lines += fits ? ' ' : '\n';
      used = fits ? used + 1 : 0;
    }
    lines += word;
  }
  return lines;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNameColumns); }

  // The bounds of numbers are in the messages that refuse others.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.empty() ? "" : " " + type.substr(0, type.find(':'));
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (const std::string value = option->get_default_str(); !value.empty()) text += " (default: " + value + ")";
    return wrapped(text, kColumns - kNameColumns);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace brigade::cli
