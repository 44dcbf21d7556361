#include "tools/job/verbs/job_run_command.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/toml_tree.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/collective/testbed_ranks.h"
#include "tools/job/verbs/verbs_job.h"
#include "tools/run/job_text.h"

namespace paceline::tools {

namespace {

struct JobRunOptions {
  InputOptions input;
  VerbsJob job;
  bool no_data = false;
  std::string out;
  std::string job_out;
  bool quiet = false;
};

// Where workload.kind is in the file; if it is not given, the file.
std::string place_of_kind(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto tree = config::parse_toml(text, file);
  const config::TomlMember* const workload = tree.ok() ? tree.value.find("workload") : nullptr;
  const config::TomlMember* const kind =
      workload != nullptr && workload->value.is_table() ? workload->value.find("kind") : nullptr;
  return kind == nullptr ? file : to_string(kind->value.where);
}

config::Read<PreparedScenario> read_job(const JobRunOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return {{}, std::move(read.errors)};
  if (read.value.workload.kind != "job") {
    return {
        {},
        {fmt::format("{}: workload.kind = \"{}\": expected \"job\": only a job's messages have an "
                     "order",
                     place_of_kind(options.input.file), read.value.workload.kind)}};
  }
  return prepare(std::move(read.value));
}

int write_job_results(const JobRunOptions& options, const PreparedScenario& prepared,
                      const VerbsJobResult& result) {
  try {
    if (!options.out.empty()) {
      experiment::write_results_file(options.out, verbs_job_json(prepared, options.job, result));
    }
    if (!options.job_out.empty()) {
      experiment::write_results_file(options.job_out, job_trace(prepared.inputs.job, result.job));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return kExitGood;
}

int run_job_command(JobRunOptions options) {
  const auto prepared = read_job(options);
  if (!prepared.ok()) return report_errors(prepared.errors);
  for (const std::string& path : {options.out, options.job_out}) {
    if (const auto errors = check_output(path); !errors.empty()) return report_errors(errors);
  }
  for (const std::string& warning : prepared.value.inputs.warnings) {
    fmt::print(stderr, "paceline: {}\n", warning);
  }
  auto nics = testbed_nics(options.job.testbed);
  if (!nics.ok()) return report_errors(nics.errors);
  if (nics.value.empty()) return kExitBadInput;
  options.job.nics = std::move(nics.value);
  options.job.data = !options.no_data;

  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const double begin = wall_seconds();
  const auto result =
      run_verbs_job(prepared.value, options.job, Interrupt::flag(), [&](double share) {
        const double spent = wall_seconds() - begin;
        line.show(share, share > 0.01 ? spent / share - spent : std::nan(""),
                  prepared.value.scenario.name);
      });
  line.clear();
  if (!result.ok()) return report_errors(result.errors);
  if (Interrupt::flag().load()) return kExitInterrupted;
  if (!result.value.failures.empty()) {
    report_errors(result.value.failures);
    return kExitFailed;
  }
  if (const int code = write_job_results(options, prepared.value, result.value);
      code != kExitGood) {
    return code;
  }
  if (!options.quiet) fmt::print("{}", verbs_job_text(prepared.value, options.job, result.value));
  return kExitGood;
}

}  // namespace

void add_job_run(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<JobRunOptions>();
  const config::Command command = parent.subcommand(
      "run", "run a whole job over verbs, in real time, between the NICs of a running testbed");
  options->input.add_to(command, "scenario with workload.kind = \"job\"", true);
  command
      .option("--testbed", options->job.testbed,
              "the running testbed; its NICs are the scenario's, in order")
      .type("NAME")
      .required();
  command
      .option("--patience", options->job.patience,
              "give up after this long without a message or computation (default: 60)")
      .type("SECONDS")
      .within(0.5, 3600.0);
  command.flag("--diagnose", options->job.diagnose,
               "name the ranks that hold up others; for other causes see `paceline diagnose "
               "--testbed`");
  command.flag("--no-data", options->no_data,
               "let a NIC's messages share memory, and compare only their lengths; for jobs "
               "in which a NIC receives more than 1 GiB");
  command.option("--out", options->out, "write the report as JSON").type("FILE.json");
  command
      .option("--job-out", options->job_out,
              "write a timeline of each rank, for Perfetto and chrome://tracing")
      .type("FILE.json");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Runs the plan of `paceline emulate`: the same messages, with the same dependencies.\n"
      "One process per NIC sends them by RDMA WRITE, waits for as long as the job computes, and\n"
      "compares every byte received with the byte sent. The scenario's fabric only says which "
      "NICs\n"
      "and servers there are; messages over NVLink go over verbs, too. Fabric and congestion\n"
      "control are the testbed's, and times include this machine's scheduling.\n"
      "The report is that of `paceline emulate` without ideal times, limits of senders and slow\n"
      "NICs, which only the emulator knows.\n"
      "Examples:\n"
      "  paceline testbed up configs/testbeds/pair.toml --set fabric.hosts=8\n"
      "  paceline job run configs/scenarios/all-reduce.toml --testbed default \\\n"
      "      --set fabric.hosts=8 --set workload.job.iterations=1 --job-out trace.json\n"
      "  paceline emulate configs/scenarios/all-reduce.toml --set fabric.hosts=8 \\\n"
      "      --set workload.job.iterations=1\n"
      "Exit status: 0 good, 1 the run failed or data is wrong, 2 bad input, 130 interrupted.");
  command.callback([options, &exit_code] { exit_code = run_job_command(*options); });
}

}  // namespace paceline::tools
