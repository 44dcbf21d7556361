// Reads the command line of a program, and reports what is wrong with it before anything acts on
// it. CLI11 alone takes -1 for 18446744073709551615 and 010 for 8, and says about `--sed 3 FILE`
// that FILE is one argument too many.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/config/command/command.h"

namespace paceline::config {

inline constexpr int kBadCommandLine = 2;

struct CommandLineFault {
  std::string error;    // empty: none was found. "--sed: there is no such option; did you mean ..."
  std::string command;  // whose --help helps: "paceline cc show"
};

// Unknown commands and options, values that are missing, empty, no numbers where numbers are
// expected, or outside of what an option's checks allow. Runs no callback.
CommandLineFault find_fault(const Command& command, std::span<char* const> arguments,
                            std::string_view program);

// Reads the arguments and runs the callbacks of commands; throws what these throw. Returns nothing
// if the program should continue, else the exit status: 0 after --help or --version,
// kBadCommandLine after a message on stderr.
std::optional<int> read_command_line(const Command& command, int argc, char** argv,
                                     std::string_view program);

}  // namespace paceline::config
