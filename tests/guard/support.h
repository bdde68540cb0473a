// Checkpoints of plain bytes, and what is read back of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard/store.h"
#include "guard/stored.h"
#include "support/temporary_folder.h"

namespace brigade::guard::testing {

// These tests flush many thousand files: in memory, where the machine has such a file system.
inline const bool kInMemory = std::filesystem::is_directory("/dev/shm") && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

struct Loaded {
  std::int64_t step = -1;
  std::string model, optimizer;
  nlohmann::json state;
  friend bool operator==(const Loaded&, const Loaded&) = default;
};

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void put_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

// What the checkpoint of a step holds; `variant` makes another one of the same step.
inline Loaded example(std::int64_t step, int variant = 0) {
  return {.step = step,
          .model = "model of step " + std::to_string(step) + ", variant " + std::to_string(variant),
          .optimizer = "momentum " + std::to_string(step * step),
          .state = {{"step", step}, {"loader", {{"epoch", 1}, {"step", step % 7}}}, {"variant", variant}}};
}

// In two pieces, as files come.
inline Producer producer_of(std::string text) {
  return [text = std::move(text)](const data::ByteSink& sink) {
    const auto bytes = std::as_bytes(std::span(text));
    sink(bytes.first(bytes.size() / 2));
    sink(bytes.subspan(bytes.size() / 2));
  };
}

inline Content content_of(const Loaded& loaded) {
  nlohmann::json state = loaded.state;
  state.erase("step");
  return {.step = loaded.step,
          .model = producer_of(loaded.model),
          .optimizer = producer_of(loaded.optimizer),
          .state = state};
}

inline std::optional<Loaded> newest_in(const std::filesystem::path& folder) {
  Loaded loaded;
  const bool found = use_newest(system_calls(), folder, [&](const Stored& stored) {
    stored.verify();
    loaded = {.step = stored.step(),
              .model = text_of(stored.path_of(Part::kModel)),
              .optimizer = text_of(stored.path_of(Part::kOptimizer)),
              .state = stored.state()};
  });
  return found ? std::optional(loaded) : std::nullopt;
}

inline void write(const std::filesystem::path& folder, const std::vector<std::int64_t>& steps,
                  std::int64_t keep = 100) {
  Store store(system_calls(), {.folder = folder, .keep_last = keep});
  for (const std::int64_t step : steps) store.write(content_of(example(step)));
}

inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// What a function logs. The sink of the log is standard error.
template <class F>
std::string logged_by(F&& function) {
  ::testing::internal::CaptureStderr();
  try {
    function();
  } catch (...) {
    ::testing::internal::GetCapturedStderr();
    throw;
  }
  return ::testing::internal::GetCapturedStderr();
}

}  // namespace brigade::guard::testing
