// `paceline emulate`: one scenario, one run, in virtual time.

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "cc/registry.h"
#include "control/experiment/results_file.h"
#include "dataplane/config/quantity.h"
#include "dataplane/config/scenario_reader.h"
#include "tools/capture_files.h"
#include "tools/cli.h"
#include "tools/emulate_report.h"
#include "tools/experiment_pick.h"
#include "tools/scenario_run.h"

namespace paceline::tools {

namespace {

struct EmulateOptions {
  InputOptions input;
  std::string out;
  std::string flows_out;
  std::string series_out;
  std::string scenario;
  std::string arm;
  std::vector<std::string> captures;
  std::string capture_limit;
  std::uint64_t capture_packets = 0;
  bool check = false;
  bool quiet = false;
};

// Empty when good.
std::string read_limits(const EmulateOptions& options, CaptureLimits& limits) {
  if (options.capture_packets != 0) limits.packets = options.capture_packets;
  if (options.capture_limit.empty()) return {};
  const auto bytes = config::parse_bytes(options.capture_limit);
  if (!bytes.ok()) return "--capture-limit " + options.capture_limit + ": " + bytes.error;
  if (bytes.value < 1000) {
    return "--capture-limit " + options.capture_limit + ": allowed is 1kB or more";
  }
  limits.bytes = bytes.value;
  return {};
}

int run(const EmulateOptions& options) {
  CaptureLimits limits;
  if (const std::string error = read_limits(options, limits); !error.empty()) {
    return report_errors({error});
  }
  config::ReaderOptions reader;
  reader.algorithms = cc::algorithms();
  reader.overrides = options.input.overrides();
  auto read = !options.scenario.empty() || !options.arm.empty()
                  ? pick_run(options.input, options.scenario, options.arm, reader)
              : options.input.file.empty()
                  ? config::read_scenario_text("", "command line", ".", reader)
                  : config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return report_errors(prepared.errors);
  for (const std::string& path : {options.out, options.flows_out, options.series_out}) {
    if (const auto errors = check_output(path); !errors.empty()) return report_errors(errors);
  }
  const config::Scenario& scenario = prepared.value.scenario;
  CaptureFiles captures;
  if (const auto errors = captures.open(prepared.value, options.captures, limits);
      !errors.empty()) {
    return report_errors(errors);
  }

  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const double begin = wall_seconds();
  const double cpu_begin = thread_cpu_seconds();
  RunControl control;
  control.check_invariants = options.check;
  control.stop = &Interrupt::flag();
  control.series = !options.series_out.empty();
  control.taps = captures.taps();
  control.progress = [&](double share) {
    const double spent = wall_seconds() - begin;
    line.show(share, share > 0.01 ? spent / share - spent : std::nan(""), scenario.name);
  };
  ScenarioRun result;
  try {
    result = run_scenario(prepared.value, scenario.cc, scenario.seed, control);
  } catch (const std::invalid_argument& error) {
    return report_errors({(options.input.file.empty() ? "" : options.input.file + ": ") +
                          std::string(error.what())});
  }
  const double cpu = thread_cpu_seconds() - cpu_begin;
  line.clear();

  if (const auto errors = captures.finish(result.result.simulated); !errors.empty()) {
    return report_errors(errors);
  }
  fmt::print(stderr, "{}", captures.warnings());
  try {
    if (!options.out.empty()) {
      experiment::write_results_file(options.out, emulation_json(scenario, result));
    }
    if (!options.flows_out.empty()) {
      experiment::write_results_file(options.flows_out, flows_csv(result));
    }
    if (!options.series_out.empty()) {
      experiment::write_results_file(options.series_out, series_csv(result));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.quiet) {
    fmt::print("{}", emulation_text(scenario, result));
    fmt::print("{}", captures.summary());
    fmt::print("speed      {:.2f} M hops/s ({} hops, {} events, {:.2f} s of CPU time)\n",
               static_cast<double>(result.result.hops) / cpu / 1e6, result.result.hops,
               result.result.events, cpu);
  }
  if (result.end == RunEnd::stopped) return kExitInterrupted;
  if (result.result.status == experiment::RunStatus::ok) return kExitGood;
  fmt::print(stderr, "paceline: {}: {}\n", scenario.name, result.result.reason);
  return kExitFailed;
}

}  // namespace

void add_emulate_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EmulateOptions>();
  CLI::App* command =
      app.add_subcommand("emulate", "run one scenario in virtual time and print what happened");
  options->input.add_to(*command, "scenario (TOML; docs/scenarios.md lists every key)", false);
  command->add_option("--out", options->out, "write totals and metrics as JSON")
      ->type_name("FILE.json");
  command
      ->add_option("--flows-out", options->flows_out,
                   "write one line per message: id,src,dst,bytes,start_ns,fct_ns,ideal_ns")
      ->type_name("FILE.csv");
  command
      ->add_option("--series-out", options->series_out,
                   "write queue, rate, pauses, CNPs, marks and losses over time, about 500 lines")
      ->type_name("FILE.csv");
  CLI::Option* capture =
      command
          ->add_option(
              "--capture", options->captures,
              "write what crosses a link, both ways, with real payload and ICRC; the file's "
              "name is the link's: host0, leaf0-spine1, ... (repeatable)")
          ->type_name("LINK.pcapng")
          ->allow_extra_args(false);
  command
      ->add_option("--capture-limit", options->capture_limit,
                   "stop writing a capture before it is larger (default: 256MB)")
      ->type_name("SIZE")
      ->needs(capture);
  command
      ->add_option("--capture-packets", options->capture_packets,
                   "stop writing a capture after so many packets (default: no limit)")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->needs(capture);
  command
      ->add_option("--scenario", options->scenario,
                   "FILE is an experiment: run its scenario of this name, under --arm")
      ->type_name("NAME");
  command->add_option("--arm", options->arm, "the arm of the experiment to run --scenario under")
      ->type_name("NAME");
  command->add_flag("--check", options->check,
                    "check the algorithms' invariants at every step (slow)");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command->footer(
      "Examples:\n"
      "  paceline emulate configs/scenarios/incast-64.toml\n"
      "  paceline emulate configs/scenarios/incast-64.toml --set cc.algorithm=cadence \\\n"
      "      --set cc.profile=default --seed 7\n"
      "  paceline emulate configs/experiments/first.toml --scenario moe-skew2 --arm cadence \\\n"
      "      --series-out series.csv\n"
      "  paceline emulate --topology fabric.topo --flows flows.txt --flows-out fct.csv\n"
      "  paceline emulate configs/scenarios/incast-16.toml --capture /tmp/host0.pcapng && \\\n"
      "      tshark -r /tmp/host0.pcapng -c 20\n"
      "A link is named as in [[event]]: host3 (its own), leaf0-spine1, spine4-core2, leaf0-leaf1, "
      "and #1, #2 ...\n"
      "for further parallel ones; with a topology file by its node numbers, 12-20.\n"
      "Exit status: 0 good, 1 the run failed or an invariant broke, 2 bad input, 130 interrupted.");
  command->callback([options, command, &exit_code] {
    if (options->input.file.empty() && options->input.topology.empty() &&
        options->input.flows.empty() && options->input.sets.empty() && options->scenario.empty() &&
        options->arm.empty()) {
      exit_code = report_errors({"no scenario: name a FILE, or --topology and --flows"});
      return;
    }
    static_cast<void>(command);
    exit_code = run(*options);
  });
}

}  // namespace paceline::tools
