#include "tools/plan/share_script.h"

#include <fmt/format.h>

#include <regex>

namespace paceline::tools {

std::string slurm_script(const SharePlan& plan) {
  std::string head = fmt::format(
      "#!/bin/sh\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --array=1-{}\n"
      "#SBATCH --ntasks=1\n",
      plan.name, plan.shares);
  if (plan.cores != 0) head += fmt::format("#SBATCH --cpus-per-task={}\n", plan.cores);
  if (!plan.time.empty()) head += fmt::format("#SBATCH --time={}\n", plan.time);
  // The limit comes with a warning, so that a share ends between two runs.
  head += fmt::format(
      "#SBATCH --signal=B:TERM@30\n"
      "#SBATCH --output={}/%a.log\n"
      "#\n"
      "# One share of the runs an element. Runs that are over are kept in {}: an element that was\n"
      "# cancelled or ran out of time goes on with the same command. Options of sbatch may be "
      "added\n"
      "# here or on its command line.\n"
      "#\n"
      "#   start, from this folder:   sbatch {}\n"
      "#   some elements again:       sbatch --array=3,7 {}\n"
      "#   when all have ended:       {}\n",
      plan.records, plan.records, plan.script, plan.script, plan.gather);
  return head + fmt::format(
                    "set -eu\n"
                    "cores=${{SLURM_CPUS_ON_NODE:-$(nproc)}}\n"
                    "exec {} \\\n"
                    "    --share \"$SLURM_ARRAY_TASK_ID/{}\" --records {} --jobs \"$cores\"\n",
                    plan.command, plan.shares, plan.records);
}

std::string share_lines(const SharePlan& plan) {
  std::string out;
  for (std::size_t part = 1; part <= plan.shares; ++part) {
    out += fmt::format("{} --share {}/{} --records {} --jobs 1 --quiet\n", plan.command, part,
                       plan.shares, plan.records);
  }
  return out;
}

bool is_slurm_time(const std::string& text) {
  static const std::regex kTime("[0-9]{1,6}(:[0-9]{2}){0,2}|[0-9]{1,4}-[0-9]{1,2}(:[0-9]{2}){0,2}");
  return std::regex_match(text, kTime);
}

}  // namespace paceline::tools
