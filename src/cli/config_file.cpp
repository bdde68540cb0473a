#include "config_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"

namespace brigade::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kSelf = "config";

struct Entry {
  std::string name;
  std::vector<std::string> values;
};

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::vector<Entry> json_entries(std::istream& input, const std::string& file) {
  const json object = json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    throw InvalidArgument(fmt::format("{}: this is no JSON object, such as {{\"model\": \"cnn\", \"lr\": 0.1}}", file));
  }
  std::vector<Entry> entries;
  for (const auto& [name, value] : object.items()) {
    if (value.is_structured() || value.is_null()) {
      throw InvalidArgument(fmt::format("{}: \"{}\" is {}, where options are numbers, texts, true or false", file, name,
                                        value.type_name()));
    }
    entries.push_back({.name = name, .values = {text_of(value)}});
  }
  return entries;
}

std::vector<Entry> toml_entries(std::istream& input, const std::string& file) {
  std::vector<Entry> entries;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(input)) {
    if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
    if (!item.parents.empty() && item.parents != std::vector<std::string>{"train"}) {
      throw InvalidArgument(fmt::format("{}: there is no section [{}]: options stand by themselves, or in [train]",
                                        file, item.parents.front()));
    }
    entries.push_back({.name = item.name, .values = item.inputs});
  }
  return entries;
}

CLI::Option& option_named(const CLI::App& command, const std::string& name, const std::string& file) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& own : option->get_lnames()) {
      if (own == "help" || own == kSelf) continue;
      if (own == name) return *const_cast<CLI::Option*>(option);  // of a command that is ours to change
      known.push_back(own);
    }
  }
  const std::string nearest = nearest_name(name, known);
  throw InvalidArgument(fmt::format("{}: there is no option \"{}\"{}", file, name,
                                    nearest.empty() ? ". Run \"brigade train --help\" for those there are"
                                                    : fmt::format(". Is \"{}\" meant?", nearest)));
}

void give(CLI::Option& option, const Entry& entry, const std::string& file) {
  try {
    if (option.get_expected_max() == 0) {
      if (entry.values.size() != 1) throw CLI::ConversionError("a flag takes true or false");
      option.add_result(option.get_flag_value(entry.name, entry.values.front()));
    } else {
      option.add_result(entry.values);
    }
    option.run_callback();
  } catch (const CLI::Error& error) {
    throw InvalidArgument(fmt::format("{}: \"{}\": {}", file, entry.name, error.what()));
  }
}

}  // namespace

void apply_config(CLI::App& command, const std::string& file) {
  std::ifstream input(file);
  if (!input) throw DataError(fmt::format("{}: the file cannot be read: give a TOML or JSON file by --config", file));
  const std::vector<Entry> entries = file.ends_with(".json") ? json_entries(input, file) : toml_entries(input, file);
  for (const Entry& entry : entries) {
    CLI::Option& option = option_named(command, entry.name, file);
    if (option.count() == 0) give(option, entry, file);
  }
}

}  // namespace brigade::cli
