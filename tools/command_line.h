// What is wrong with a command line, found out before any command acts on it. CLI11 takes -1 for
// 18446744073709551615 and 010 for 8, and says of `--sed 3 FILE` that FILE is one too many.
#pragma once

#include <span>
#include <string>

#include <CLI/CLI.hpp>

namespace paceline::tools {

// Every command of `paceline`. A callback stores its exit code in `exit_code`.
void add_commands(CLI::App& app, int& exit_code);

struct CommandLineFault {
  std::string error;    // empty: none was found. "--sed: there is no such option; did you mean ..."
  std::string command;  // whose --help helps: "paceline cc show"
};

// Unknown commands and options, values that are missing, empty, no numbers where numbers are
// expected, or outside of what an option's checks allow. Runs no callback.
CommandLineFault find_fault(CLI::App& app, std::span<char* const> arguments);

// The words for what only CLI11 finds: what is required, and what needs what.
std::string words_for(const CLI::ParseError& error);

}  // namespace paceline::tools
