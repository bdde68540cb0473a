// What a checkpoint's folder holds, and the file that says so: manifest.json, written last, with the size and digest of each of
// the others. A folder without it, or in which it does not hold, is no checkpoint.
//
//   {
//     "files": {"model.safetensors": {"bytes": 1336, "xxh3": "0f3b…"}, "optimizer.safetensors": …, "state.json": …},
//     "format": 1,
//     "step": 42
//   }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brigade::guard {

// The files of a checkpoint besides its manifest.
enum class Part : std::uint8_t { kModel, kOptimizer, kState };
inline constexpr std::array kParts = {Part::kModel, Part::kOptimizer, Part::kState};
inline constexpr std::size_t kPartCount = kParts.size();

std::string file_of(Part part);  // "model.safetensors"
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::size_t kMaxManifestBytes = 4096;

// What tells whether a file is the one that was written.
struct FileRecord {
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  // digest.h
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

struct Manifest {
  std::int64_t step = 0;
  std::array<FileRecord, kPartCount> files = {};  // [part]
  const FileRecord& of(Part part) const { return files[static_cast<std::size_t>(part)]; }
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string to_text(const Manifest& manifest);

// Takes what to_text() gives, byte for byte, and nothing else: no digest guards this file. Throws DataError that begins with
// `name`.
Manifest parse_manifest(std::string_view name, std::string_view text);

// "step-00000042" and back; nothing for any other name.
std::string folder_of(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view folder);

}  // namespace brigade::guard
