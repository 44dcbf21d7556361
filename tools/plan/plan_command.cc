// `paceline plan` and `paceline gather`: the runs of a command in shares, for many machines.

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "control/experiment/results/reproduce.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/document.h"
#include "tools/cli/cli.h"
#include "tools/plan/planned_command.h"
#include "tools/plan/share_script.h"

namespace paceline::tools {

namespace {

struct PlanOptions {
  PlannedCommand command;
  bool slurm = false;
  std::uint32_t array = 0;
  std::uint32_t shares = 0;
  std::string out;
  std::string records;
  std::string time;
  unsigned cores = 0;
};

// This program, so that shares are executed by the build that gathers them.
std::string program_path() {
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? "paceline" : path.string();
}

std::vector<std::string> plan_problems(const PlanOptions& options) {
  std::vector<std::string> errors;
  if (options.slurm == (options.shares != 0) || options.slurm != (options.array != 0)) {
    errors.emplace_back("expected --slurm --array N, or --shares N");
  }
  if (options.slurm && options.out.empty()) {
    errors.emplace_back("--slurm: expected -o FILE, the script for sbatch");
  }
  if (!options.slurm && (!options.time.empty() || options.cores != 0)) {
    errors.emplace_back("--time, --cores: they are for --slurm");
  }
  if (!options.time.empty() && !is_slurm_time(options.time)) {
    errors.push_back(fmt::format(
        "--time {}: expected minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS", options.time));
  }
  for (std::string& error : check_output(options.out)) errors.push_back(std::move(error));
  return errors;
}

int run_plan(const PlanOptions& options) {
  std::vector<std::string> errors = plan_problems(options);
  const auto name = options.command.name();
  errors.insert(errors.end(), name.errors.begin(), name.errors.end());
  if (!errors.empty()) return report_errors(errors);
  // Errors are reported now, not by a hundred shares.
  std::vector<std::string> dry{"--dry-run"};
  if (options.out.empty()) dry.emplace_back("--quiet");
  if (const int code = options.command.run(name.value, dry); code != kExitGood) return code;

  using experiment::shell_word;
  const std::string stem = config::default_name(options.command.file(), "plan");
  const std::string folder = options.records.empty() ? stem + ".records" : options.records;
  SharePlan shares;
  shares.name = stem;
  shares.command = options.command.text(shell_word(program_path()), name.value);
  shares.gather = options.command.text("paceline", name.value) + " --gather " + shell_word(folder);
  shares.records = shell_word(folder);
  shares.script = shell_word(options.out);
  shares.shares = options.slurm ? options.array : options.shares;
  shares.time = options.time;
  shares.cores = options.cores;
  const std::string text = options.slurm ? slurm_script(shares) : share_lines(shares);
  if (options.out.empty()) {
    fmt::print("{}", text);
    return kExitGood;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);  // Slurm makes none for its logs
  if (failed)
    return report_errors({fmt::format("{}: cannot be made: {}", folder, failed.message())});
  try {
    experiment::write_results_file(options.out, text);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  fmt::print("{}: {} shares\nwhen all have ended: {}\n", options.out, shares.shares, shares.gather);
  return kExitGood;
}

void add_plan(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<PlanOptions>();
  const config::Command command =
      app.subcommand("plan", "share the runs of an experiment, a league or a sweep among machines");
  options->command.add_file(command);
  command.flag("--slurm", options->slurm, "write a script for Slurm's sbatch");
  command.option("--array", options->array, "elements of Slurm's job array, one share each")
      .type("N")
      .within(1, 1'000'000);
  command
      .option("--shares", options->shares,
              "instead of --array: one command per line, for xargs -P or GNU parallel")
      .type("N")
      .within(1, 1'000'000);
  command.option("-o,--script", options->out, "where to write (default: the terminal)")
      .type("FILE");
  command
      .option("--records", options->records,
              "where shares keep their runs; all machines must see it (default: "
              "NAME.records)")
      .type("FOLDER");
  command.option("--time", options->time, "Slurm's time limit of a share: 02:00:00").type("TIME");
  command.option("--cores", options->cores, "cores of a share (default: the partition's)")
      .type("N")
      .within(1, 1024);
  options->command.add_words(command);
  command.footer(
      "Checks FILE, then writes the commands; runs nothing. A share keeps every finished run. If "
      "a\n"
      "signal or a time limit ends it, the same command continues it. Runs are dealt to shares in\n"
      "turn, so shares take about the same time. Results are those of one machine, byte for byte.\n"
      "Examples:\n"
      "  paceline plan configs/league.toml --slurm --array 200 --time 02:00:00 -o league.sbatch\n"
      "  paceline plan configs/experiments/first.toml --shares 24 -o first.sh --set seed=2\n"
      "  xargs -d '\\n' -n 1 -P 8 sh -c < first.sh\n"
      "  paceline gather configs/experiments/first.toml first.records --set seed=2\n"
      "Exit status: 0 good, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run_plan(*options); });
}

struct GatherOptions {
  PlannedCommand command;
  std::string folder;
};

int run_gather(const GatherOptions& options) {
  const auto name = options.command.name();
  if (!name.ok()) return report_errors(name.errors);
  return options.command.run(name.value, {"--gather", options.folder});
}

void add_gather(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<GatherOptions>();
  const config::Command command = app.subcommand(
      "gather", "put the runs of all shares together, and write the results of one machine");
  options->command.add_file(command);
  command.option("FOLDER", options->folder, "where the shares kept their runs (--records)")
      .required();
  options->command.add_words(command);
  command.footer(
      "Runs nothing. Runs of another plan or build, lines that are cut off or changed, and two "
      "runs\n"
      "of one task that differ are refused with file and line. Where runs are missing, it says\n"
      "which shares run them, and writes nothing.\n"
      "Examples:\n"
      "  paceline gather configs/league.toml league.records\n"
      "  paceline gather configs/league.toml quick.records -- --quick --out quick.json\n"
      "Exit status: that of the command; 1 if runs are missing, 2 if some are refused.");
  command.callback([options, &exit_code] { exit_code = run_gather(*options); });
}

}  // namespace

void add_plan_commands(const config::Command& app, int& exit_code) {
  add_plan(app, exit_code);
  add_gather(app, exit_code);
}

}  // namespace paceline::tools
