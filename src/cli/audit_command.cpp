#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "brigade/base/error.h"
#include "brigade/guard/compare.h"
#include "commands.h"

namespace brigade::cli {
namespace {

constexpr std::size_t kShown = 20;

struct AuditOptions {
  std::string first;
  std::string second;
  bool json = false;
  bool all = false;
};

// What a path names, and whether it is a checkpoint or only a file of tensors.
struct Side {
  std::string name;
  guard::Checkpoint content = {};
  bool is_checkpoint = true;
};

Side read(const std::string& path) {
  if (!std::filesystem::is_directory(path))
    return {.name = path, .content = {.model = data::read_safetensors(path).tensors}, .is_checkpoint = false};
  if (std::filesystem::exists(std::filesystem::path(path) / "manifest.json"))
    return {.name = path, .content = guard::load(path)};
  std::optional<guard::Checkpoint> newest = guard::newest(path);
  if (!newest) {
    throw DataError(
        fmt::format("{}: there is no checkpoint in this folder. Name a checkpoint, the folder of a run, or a "
                    ".safetensors file.",
                    path));
  }
  return {.name = fmt::format("{} (step {})", path, newest->step), .content = std::move(*newest)};
}

std::string_view name_of(guard::Difference::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"only_in_first", "only_in_second", "dtype", "shape", "values"};
  return kNames.at(static_cast<std::size_t>(kind));
}

nlohmann::json to_json(const guard::Difference& one) {
  nlohmann::json line = {{"part", one.part}, {"name", one.name}, {"kind", name_of(one.kind)}};
  if (!one.first.empty()) line["first"] = one.first;
  if (!one.second.empty()) line["second"] = one.second;
  if (one.count == 0) return line;
  line["index"] = one.index;
  line["count"] = one.count;
  line["elements"] = one.elements;
  line["largest_ulps"] = one.largest_ulps ? nlohmann::json(*one.largest_ulps) : nlohmann::json();
  return line;
}

void print_json(const Side& first, const Side& second, const guard::Comparison& found) {
  nlohmann::json all = {{"first", first.name},
                        {"second", second.name},
                        {"equal", found.equal()},
                        {"tensors", found.tensors},
                        {"differences", nlohmann::json::array()}};
  for (const guard::Difference& one : found.differences) all["differences"].push_back(to_json(one));
  all["notes"] = nlohmann::json::array();
  for (const guard::Difference& one : found.notes) all["notes"].push_back(to_json(one));
  fmt::print("{}\n", all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const Side& first, const Side& second, const guard::Comparison& found, std::size_t limit) {
  for (const guard::Difference& one : found.notes) fmt::print("note: {}\n", guard::describe(one));
  const std::string compared = fmt::format("{} tensor{} compared", found.tensors, found.tensors == 1 ? "" : "s");
  if (found.equal()) {
    fmt::print("{} and {} are equal, bit for bit: {}\n", first.name, second.name, compared);
    return;
  }
  fmt::print("{} and {} differ: {}, {} difference{}\n", first.name, second.name, compared, found.differences.size(),
             found.differences.size() == 1 ? "" : "s");
  const std::size_t shown = std::min(limit, found.differences.size());
  for (std::size_t i = 0; i < shown; ++i) fmt::print("  {}\n", guard::describe(found.differences[i]));
  if (shown < found.differences.size())
    fmt::print("  and {} more, which --all shows\n", found.differences.size() - shown);
}

Exit run(const AuditOptions& options) {
  const Side first = read(options.first);
  const Side second = read(options.second);
  const bool whole = first.is_checkpoint && second.is_checkpoint;
  const guard::Comparison found =
      whole ? guard::compare(first.content, second.content) : guard::compare(first.content.model, second.content.model);
  if (options.json) {
    print_json(first, second, found);
  } else {
    print_text(first, second, found, options.all ? found.differences.size() : kShown);
  }
  return found.equal() ? Exit::kSuccess : Exit::kDifferent;
}

}  // namespace

Command add_audit_command(CLI::App& program) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* const command = program.add_subcommand(
      "audit",
      "Compare two checkpoints, bit for bit: tensors that one lacks, shapes, dtypes, values, the state.\n"
      "A and B are checkpoints (run/step-00000042), folders of runs (their newest checkpoint is taken), or "
      ".safetensors files.\n"
      "Ends with code 0 when they are equal, 5 when they differ, 3 when one is missing or damaged.\n"
      "Example: brigade audit run/step-00000042 other/step-00000042");
  command->add_option("A", options->first, "the first checkpoint")->required();
  command->add_option("B", options->second, "the second one")->required();
  command->add_flag("--json", options->json, "print one JSON object");
  command->add_flag("--all", options->all, fmt::format("print every difference, and not the first {} only", kShown));
  return [options] { return run(*options); };
}

}  // namespace brigade::cli
