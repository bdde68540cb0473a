// Where recorded cases lie: values that other software computed, which tests compare ours with. Free of torch.
//
// The environment variable BRIGADE_CASES names a folder, for instance one made from another seed; without it a file is
// taken from shared/cases beside the project, where there is one, and else from the copy in tests/cases.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace brigade::cases {

inline nlohmann::json parse_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the recorded cases in " + path.string());
  return nlohmann::json::parse(file);
}

// The copy in tests/cases, whatever else there is.
inline std::filesystem::path own_path(const std::string& name) {
  return std::filesystem::path(BRIGADE_TEST_CASES) / name;
}
inline nlohmann::json load_own(const std::string& name) { return parse_file(own_path(name)); }

// Where the file or folder `name` lies, such as "jax/random.json".
inline std::filesystem::path path_of(const std::string& name) {
  const char* folder = std::getenv("BRIGADE_CASES");
  if (folder != nullptr && *folder != '\0') return std::filesystem::path(folder) / name;
  const auto shared =
      std::filesystem::path(BRIGADE_TEST_CASES).parent_path().parent_path().parent_path() / "shared" / "cases" / name;
  return std::filesystem::exists(shared) ? shared : own_path(name);
}

// The parsed file `name`. Throws std::runtime_error, naming the path, when there is none.
inline nlohmann::json load(const std::string& name) { return parse_file(path_of(name)); }

}  // namespace brigade::cases
