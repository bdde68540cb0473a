#include "guard/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "brigade/base/error.h"

namespace brigade::guard {
namespace {

constexpr int kFormat = 1;
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kAdvice = "The checkpoint is damaged: use another one.";

FileRecord record_of(const nlohmann::json& entry) {
  FileRecord record = {.bytes = entry.at("bytes").get<std::uint64_t>()};
  const auto& digits = entry.at("xxh3").get_ref<const std::string&>();
  std::from_chars(digits.data(), digits.data() + digits.size(), record.digest, 16);
  return record;
}

}  // namespace

std::string file_of(Part part) {
  constexpr std::array<std::string_view, kPartCount> kNames = {"model.safetensors", "optimizer.safetensors",
                                                               "state.json"};
  return std::string(kNames[static_cast<std::size_t>(part)]);
}

std::string to_text(const Manifest& manifest) {
  nlohmann::json files;
  for (const Part part : kParts) {
    files[file_of(part)] = {{"bytes", manifest.of(part).bytes},
                            {"xxh3", fmt::format("{:016x}", manifest.of(part).digest)}};
  }
  const nlohmann::json all = {{"format", kFormat}, {"step", manifest.step}, {"files", files}};
  return all.dump(2) + "\n";
}

Manifest parse_manifest(std::string_view name, std::string_view text) {
  if (text.size() > kMaxManifestBytes)
    throw DataError(
        fmt::format("{}: has {} bytes, where a manifest takes a few hundred. {}", name, text.size(), kAdvice));
  Manifest manifest;
  int format = 0;
  try {
    const nlohmann::json all = nlohmann::json::parse(text);
    format = all.at("format").get<int>();
    manifest.step = all.at("step").get<std::int64_t>();
    for (const Part part : kParts)
      manifest.files[static_cast<std::size_t>(part)] = record_of(all.at("files").at(file_of(part)));
  } catch (const nlohmann::json::exception&) {  // its text may hold what a terminal obeys
    throw DataError(fmt::format("{}: is no manifest of a checkpoint. {}", name, kAdvice));
  }
  if (format > kFormat) {
    throw DataError(fmt::format("{}: has format {}, where this version of Brigade reads {}. Use a newer version.", name,
                                format, kFormat));
  }
  if (to_text(manifest) != text)
    throw DataError(fmt::format("{}: was changed after it was written. {}", name, kAdvice));
  return manifest;
}

std::string folder_of(std::int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

std::optional<std::int64_t> step_of(std::string_view folder) {
  if (!folder.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = folder.substr(kStepPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || folder != folder_of(step)) return std::nullopt;
  return step;
}

}  // namespace brigade::guard
