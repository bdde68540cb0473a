#include "optim/glob.h"

#include <algorithm>
#include <vector>

namespace brigade::optim {

std::size_t edits_to_match(std::string_view pattern, std::string_view name) {
  // edits[j]: between the part of the pattern so far and the first j characters of the name.
  std::vector<std::size_t> edits(name.size() + 1);
  for (std::size_t j = 0; j <= name.size(); ++j) edits[j] = j;
  for (const char wanted : pattern) {
    const bool any = wanted == '*';
    std::size_t diagonal = edits[0];
    if (!any) ++edits[0];
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const std::size_t above = edits[j];
      const std::size_t replaced = diagonal + (any || wanted == '?' || wanted == name[j - 1] ? 0 : 1);
      const std::size_t inserted = above + (any ? 0 : 1);
      const std::size_t deleted = edits[j - 1] + (any ? 0 : 1);
      edits[j] = std::min({replaced, inserted, deleted});
      diagonal = above;
    }
  }
  return edits[name.size()];
}

}  // namespace brigade::optim
