// The program `brigade`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/watchdog.h"
#include "commands.h"
#include "help_format.h"
#include "version.h"

namespace brigade::cli {
namespace {

// Errors of ours whose kind has a code of its own.
Exit code_of(const Error& error) {
  if (dynamic_cast<const DataError*>(&error) != nullptr) return Exit::kData;
  if (dynamic_cast<const NonFiniteError*>(&error) != nullptr) return Exit::kNonFinite;
  if (dynamic_cast<const InvalidArgument*>(&error) != nullptr) return Exit::kUsage;
  if (dynamic_cast<const EnvironmentError*>(&error) != nullptr) return Exit::kUsage;
  if (dynamic_cast<const DriftError*>(&error) != nullptr) return Exit::kDrift;
  if (dynamic_cast<const DeadlineExceeded*>(&error) != nullptr) return Exit::kHang;
  return Exit::kFailure;
}

// libtorch has no type of its own for it, and says how much was asked for.
Exit code_of(const std::exception& error) {
  const bool allocator = std::string_view(error.what()).find("DefaultCPUAllocator") != std::string_view::npos;
  return allocator || dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? Exit::kOutOfMemory : Exit::kFailure;
}

// A thread that does not come back cannot be stopped, and a scheduler waits for the process.
void end_at_hangs() {
  brigade::set_hang_action([](const std::string& table) {
    std::fprintf(stderr, "brigade: %s\n", table.c_str());
    std::_Exit(static_cast<int>(Exit::kHang));
  });
}

// For an option or a command that does not exist, the one that may have been meant.
std::string suggestion(const CLI::App& program, int argc, char** argv) {
  std::vector<std::string> known;
  const auto add_options = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  };
  add_options(program);
  for (const CLI::App* command : program.get_subcommands({})) {
    known.push_back(command->get_name());
    if (program.got_subcommand(command)) add_options(*command);
  }
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word = word.substr(0, word.find('='));
    const bool exists = std::find(known.begin(), known.end(), word) != known.end();
    const bool could_be_one = word.rfind("--", 0) == 0 || i == 1;
    if (exists || !could_be_one) continue;
    if (const std::string nearest = nearest_name(word, known); !nearest.empty()) {
      return fmt::format("brigade: is \"{}\" meant?\n", nearest);
    }
  }
  return {};
}

Exit run(int argc, char** argv) {
  CLI::App program("Synchronous data-parallel training.\nExample: brigade train --devices 2");
  program.name("brigade");
  program.formatter(help_formatter());  // commands take it over
  program.set_version_flag("--version", std::string("brigade ") + kVersion);
  program.require_subcommand(1);
  const std::map<std::string, Command> commands = {{"train", add_train_command(program)},
                                                   {"devices", add_devices_command(program)},
                                                   {"audit", add_audit_command(program)}};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return static_cast<Exit>(program.exit(error));  // --help and --version
    std::fprintf(stderr, "brigade: %s\n%sRun \"brigade --help\" or \"brigade COMMAND --help\".\n", error.what(),
                 suggestion(program, argc, argv).c_str());
    return Exit::kUsage;
  }
  end_at_hangs();
  return commands.at(program.get_subcommands().front()->get_name())();
}

}  // namespace
}  // namespace brigade::cli

int main(int argc, char** argv) {
  using brigade::cli::Exit;
  Exit code = Exit::kFailure;
  try {
    code = brigade::cli::run(argc, argv);
  } catch (const brigade::Error& error) {
    std::fprintf(stderr, "brigade: %s\n", error.what());
    code = brigade::cli::code_of(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brigade: %s\n", error.what());
    code = brigade::cli::code_of(error);
  }
  return static_cast<int>(code);
}
