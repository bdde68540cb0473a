#include "brigade/tree/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "brigade/base/error.h"

namespace brigade::tree {
namespace {

bool is_identifier(std::string_view name) {
  return !std::isdigit(static_cast<unsigned char>(name.front())) && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

void append(const Path& path, std::string& text) {
  if (path.parent() == nullptr) return;
  append(*path.parent(), text);
  const Step& step = path.step();
  if (step.name.empty()) {
    text += fmt::format("[{}]", step.index);
  } else if (is_identifier(step.name)) {
    text += fmt::format("{}{}", text.empty() ? "" : ".", step.name);
  } else {
    text += fmt::format("[\"{}\"]", step.name);
  }
}

}  // namespace

std::string Path::text(std::string_view root) const {
  std::string text(root);
  append(*this, text);
  return text.empty() ? "the tree itself" : text;
}

void throw_structure_mismatch(const Path& path, std::string_view difference) {
  throw TreeError(fmt::format("trees that must have the same structure differ at {}: {}", path.text(), difference));
}

void throw_leaf_count_mismatch(std::size_t places, std::size_t count) {
  throw TreeError(
      fmt::format("{} tensors cannot fill a tree that holds {}: pass as many as flatten() gives", count, places));
}

}  // namespace brigade::tree
