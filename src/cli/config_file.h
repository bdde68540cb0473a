// Options out of a file, in TOML or JSON, by the names that they have on the command line:
//
//   model = "cnn"                {"model": "cnn",
//   global-batch = 256            "global-batch": 256,
//   no-share-parameters = true    "no-share-parameters": true}
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace brigade::cli {

// Gives `command`, which has been parsed, what the file says and the command line did not. A file whose name ends in .json
// is JSON. Throws DataError when the file cannot be read, InvalidArgument, with the nearest name, for one that no option
// has, and for a value that the option does not take.
void apply_config(CLI::App& command, const std::string& file);

}  // namespace brigade::cli
