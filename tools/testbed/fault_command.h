// `paceline testbed fault`: what happens to emulated links and to clocks of a running testbed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/command/command.h"

namespace paceline::tools {

struct FaultOptions {
  std::string target;
  std::vector<std::string> changes;  // "down", "loss=0.01", "pcie_limit"
  std::string direction;
  std::string after;
  std::string lasts;
  std::string script;
  std::uint32_t random = 0;
  std::optional<double> severity;
  std::optional<std::uint64_t> seed;  // of --random: 1
  std::string every = "100ms";

  void add_to(const config::Command& command);
};

// Asks the service at `socket`; `how_else` are the options that name the same testbed. Returns an
// exit code, and has printed why.
int inject_faults(const FaultOptions& options, const std::string& socket,
                  const std::string& how_else);

}  // namespace paceline::tools
