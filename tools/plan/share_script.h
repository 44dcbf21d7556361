// The commands of all shares of a plan, for Slurm or for running as shell lines.
#pragma once

#include <cstddef>
#include <string>

namespace paceline::tools {

struct SharePlan {
  std::string name;     // of the job
  std::string command;  // without what concerns shares: "/usr/bin/paceline ab first.toml"
  std::string gather;   // the command that merges them
  std::string records;  // folder, as a shell reads it
  std::string script;   // the file that the text is written to, as a shell reads it
  std::size_t shares = 1;
  std::string time;    // Slurm's limit for a share; empty: that of the partition
  unsigned cores = 0;  // of a share; 0: the partition's default
};

// A job array, with one share per element.
std::string slurm_script(const SharePlan& plan);
// One line per share, each on one core.
std::string share_lines(const SharePlan& plan);

// Whether Slurm accepts it as a time: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS.
bool is_slurm_time(const std::string& text);

}  // namespace paceline::tools
