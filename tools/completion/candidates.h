// Candidates for the next word on the command line of `paceline`, from the options that the
// commands have declared.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/config/command/command.h"

namespace paceline::tools {

struct Candidate {
  std::string word;
  std::string help;
};

struct Candidates {
  std::vector<Candidate> words;
  bool files = false;  // and names of files
  // The words from here on are a program and its arguments, which it alone can complete.
  std::optional<std::size_t> program;
};

// `words`: those after "paceline". The last one is being typed, and may be empty.
Candidates find_candidates(const config::Command& program, std::span<const std::string> words);

}  // namespace paceline::tools
