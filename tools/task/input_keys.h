// Hashes of what determines the result of a run beside the text of its configuration: this program,
// the files that a scenario names, plug-ins. Two runs with equal keys have the same result.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "dataplane/config/scenario.h"

namespace paceline::tools {

// Of this program, byte by byte: results of two builds may differ.
std::uint64_t program_key();

class InputKeys {
 public:
  // The names and the content of all files that the scenario names. Each file is read once.
  std::uint64_t of_files(const config::Scenario& scenario);
  // The content of the plug-ins among the algorithm and its fallback; 0 where there are none.
  static std::uint64_t of_plugins(const config::CcConfig& cc);

 private:
  std::uint64_t of_file(const std::string& path);

  std::map<std::string, std::uint64_t> known_;
};

}  // namespace paceline::tools
