// The commands that repeat an experiment, or one run of it, written below every figure of a report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/results/results_file.h"

namespace paceline::experiment {

// The word as a POSIX shell reads it: quoted if it has to be.
std::string shell_word(std::string_view word);

class Reproduce {
 public:
  // `results_name`: the name of the results file in the commands.
  Reproduce(const Results& results, std::string results_name);

  // The whole experiment: every number and every chart over all repetitions.
  std::string experiment() const;
  // One run, its course over time written as CSV.
  std::string run(std::string_view scenario, std::string_view arm, std::uint64_t seed) const;
  // The page itself, from the results file.
  std::string page() const;
  // False if the results do not say from which file they came (written without `detail`): the
  // commands then name experiment.toml, which is the text under `configuration`.
  bool knows_file() const { return knows_file_; }

 private:
  std::string file_;
  std::vector<std::string> overrides_;
  std::string results_name_;
  bool knows_file_;
};

}  // namespace paceline::experiment
