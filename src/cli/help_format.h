// How `--help` looks: what an option takes in a word, and descriptions that end before column 100.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace brigade::cli {

std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace brigade::cli
