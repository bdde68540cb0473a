// docs/pmap.md against the program that its blocks of code are taken from.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.h"

namespace brigade {
namespace pmap_tour_test {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What stands in the blocks of the page that begin with ```kind, in order.
std::vector<std::string> blocks_of_page(std::string_view kind) {
  std::vector<std::string> blocks;
  bool inside = false, wanted = false;
  for (const std::string& line : lines_of(BRIGADE_PMAP_PAGE)) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line.substr(3) == kind;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      blocks.back() += line + '\n';
    }
  }
  return blocks;
}

struct Section {
  std::string name;
  std::string code;
};

// What stands between `// [name]` and `// [/name]` in the program, in order, and moved to the left as far as those are.
std::vector<Section> sections_of_program() {
  std::vector<Section> sections;
  std::size_t indent = 0;
  bool inside = false;
  for (const std::string& line : lines_of(BRIGADE_PMAP_TOUR_SOURCE)) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string_view words =
        begin == std::string::npos ? std::string_view() : std::string_view(line).substr(begin);
    if (inside && words == "// [/" + sections.back().name + "]") {
      inside = false;
    } else if (inside) {
      sections.back().code += line.substr(std::min(indent, line.size())) + '\n';
    } else if (words.starts_with("// [") && words.ends_with("]")) {
      inside = true;
      indent = begin;
      sections.push_back({std::string(words.substr(4, words.size() - 5)), ""});
    }
  }
  return sections;
}

TEST(PmapTour, HasTheCodeOfThePageWordForWord) {
  const std::vector<std::string> blocks = blocks_of_page("cpp");
  const std::vector<Section> sections = sections_of_program();
  ASSERT_FALSE(blocks.empty());
  ASSERT_EQ(blocks.size(), sections.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i], sections[i].code) << sections[i].name;
}

TEST(PmapTour, PrintsWhatThePageShowsWhateverTheMachine) {
  std::string shown;
  for (const std::string& block : blocks_of_page("text")) shown += block;
  for (const char* const setting : {"BRIGADE_CPU_DEVICES=1", "BRIGADE_CPU_DEVICES=9"}) {
    const Finished ran = run_process({BRIGADE_PMAP_TOUR}, {setting});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, shown);
  }
}

}  // namespace pmap_tour_test
}  // namespace brigade
