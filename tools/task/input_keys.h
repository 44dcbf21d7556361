// Hashes of everything that determines the result of a run: this program, the resolved
// configuration, the content of files that a scenario names, plug-ins. Two runs with equal keys and
// seeds have the same result.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "dataplane/config/scenario.h"

namespace paceline::tools {

// Hash of this program's bytes, because results of two builds may differ.
std::uint64_t program_key();

class InputKeys {
 public:
  // Hash of everything but the name and the seed. The contents of files count, their paths do not;
  // each file is read once.
  std::uint64_t of_scenario(const config::Scenario& scenario);
  // Hash of its files and plug-ins only.
  std::uint64_t of_files(const config::Scenario& scenario);

 private:
  std::uint64_t of_file(const std::string& path);

  std::map<std::string, std::uint64_t> known_;
};

}  // namespace paceline::tools
