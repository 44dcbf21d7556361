// `paceline emulate`: one scenario, one run, in virtual time or under the clock.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/capture/capture_files.h"
#include "tools/cli/cli.h"
#include "tools/emulate/emulate_report.h"
#include "tools/emulate/experiment_pick.h"
#include "tools/plugin/plugin_check.h"
#include "tools/run/job_text.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

namespace {

struct EmulateOptions {
  InputOptions input;
  std::string out;
  std::string flows_out;
  std::string series_out;
  std::string job_out;
  std::string scenario;
  std::string arm;
  LinkCaptureOptions captures;
  std::string on_stop = "run-on";
  std::uint32_t threads = 1;
  bool real_time = false;
  bool check = false;
  bool quiet = false;
};

// cpu: of this thread; wall: of the run, by the clock.
std::string speed_text(const ScenarioRun& run, double cpu, double wall) {
  const auto hops = static_cast<double>(run.result.hops) / 1e6;
  const ParallelUse& use = run.thread_use;
  if (use.threads.empty()) {
    return fmt::format("speed      {:.2f} M hops/s ({} hops, {} events, {:.2f} s of CPU time)\n",
                       hops / cpu, run.result.hops, run.result.events, cpu);
  }
  double all_cpu = cpu;
  double waited = 0;
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < use.threads.size(); ++i) {
    if (i != 0) all_cpu += use.threads[i].cpu_seconds;
    waited += use.threads[i].waiting_seconds;
    events += use.threads[i].events;
  }
  std::string text = fmt::format(
      "speed      {:.2f} M hops/s ({} hops, {} events, {:.2f} s on {} threads, {:.2f} s of CPU "
      "time)\n",
      hops / wall, run.result.hops, run.result.events, wall, use.threads.size(), all_cpu);
  text += fmt::format(
      "threads    {} windows; waiting {:.1f} % of the threads' time; {:.1f} % of the events worked "
      "off by one\n",
      use.windows, 100 * waited / (wall * static_cast<double>(use.threads.size())),
      100 * static_cast<double>(use.events_alone) /
          static_cast<double>(std::max<std::uint64_t>(events, 1)));
  return text;
}

int run(const EmulateOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = !options.scenario.empty() || !options.arm.empty()
                  ? pick_run(options.input, options.scenario, options.arm, reader)
              : options.input.file.empty()
                  ? config::read_scenario_text("", "command line", ".", reader)
                  : config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return report_errors(prepared.errors);
  if (const auto errors = plugins_out_of_bounds(); !errors.empty()) return report_errors(errors);
  for (const std::string& path :
       {options.out, options.flows_out, options.series_out, options.job_out}) {
    if (const auto errors = check_output(path); !errors.empty()) return report_errors(errors);
  }
  for (const std::string& warning : prepared.value.inputs.warnings) {
    fmt::print(stderr, "paceline: {}\n", warning);
  }
  const config::Scenario& scenario = prepared.value.scenario;
  if (!options.job_out.empty() && scenario.workload.kind != "job") {
    return report_errors({"--job-out: the workload is not a job"});
  }
  CaptureFiles captures;
  if (const auto errors = captures.open(scenario, prepared.value.inputs.numbers, options.captures);
      !errors.empty()) {
    return report_errors(errors);
  }

  std::unique_ptr<TscWallClock> clock;
  if (options.real_time) clock = std::make_unique<TscWallClock>();
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const double begin = wall_seconds();
  const double cpu_begin = thread_cpu_seconds();
  RunControl control;
  control.check_invariants = options.check;
  control.stop = &Interrupt::flag();
  control.series = !options.series_out.empty();
  control.taps = captures.taps();
  control.threads = options.threads;
  control.real_time.clock = clock.get();
  control.real_time.on_stop = options.on_stop == "hold" ? OnStop::hold : OnStop::run_on;
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
  const double wall = wall_seconds() - begin;
  line.clear();
  if (!result.one_thread_because.empty()) {
    fmt::print(stderr, "paceline: {}: run on one thread: {}\n", scenario.name,
               result.one_thread_because);
  }
  if (result.counters.plugin_quarantines != 0) {
    fmt::print(stderr,
               "paceline: {}: plug-in {} went into quarantine on {} hosts, on {} of them for its "
               "receiving "
               "half: {} nonsense decisions, {} contexts handed to {}\n",
               scenario.name, scenario.cc.algorithm, result.counters.plugin_quarantines,
               result.counters.plugin_receiver_quarantines, result.counters.plugin_nonsense,
               result.counters.fallbacks, scenario.cc.fallback);
  }

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
    if (!options.job_out.empty()) {
      experiment::write_results_file(options.job_out,
                                     job_trace(prepared.value.inputs.job, *result.job));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.quiet) {
    fmt::print("{}", emulation_text(scenario, result));
    fmt::print("{}", captures.summary());
    if (options.real_time) {
      fmt::print("{}", real_time_text(result.real_time));
    } else {
      fmt::print("{}", speed_text(result, cpu, wall));
    }
  }
  if (result.end == RunEnd::stopped) return kExitInterrupted;
  if (result.result.status == experiment::RunStatus::ok) return kExitGood;
  fmt::print(stderr, "paceline: {}: {}\n", scenario.name, result.result.reason);
  return kExitFailed;
}

}  // namespace

void add_emulate_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<EmulateOptions>();
  const config::Command command = app.subcommand(
      "emulate", "run one scenario, in virtual time or real time, and print what happened");
  options->input.add_to(command, "scenario (TOML; docs/scenarios.md lists every key)", false);
  command.option("--out", options->out, "write totals and metrics as JSON").type("FILE.json");
  command
      .option("--flows-out", options->flows_out,
              "write one line per message: id,src,dst,bytes,start_ns,fct_ns,ideal_ns")
      .type("FILE.csv");
  command
      .option("--series-out", options->series_out,
              "write queue, rate, pauses, CNPs, marks and losses over time, about 500 lines")
      .type("FILE.csv");
  command
      .option("--job-out", options->job_out,
              "write a timeline of each rank of a job, for Perfetto and chrome://tracing")
      .type("FILE.json");
  options->captures.add_to(command);
  command
      .option("--threads", options->threads,
              "run on N threads (default: 1), with the same results; faster from a few "
              "hundred hosts on. A run that needs one thread (--capture, --series-out, "
              "max_hops, one switch) says so and uses one")
      .type("N")
      .within(1U, kMaxThreads);
  const config::Option real_time = command.flag(
      "--real-time", options->real_time,
      "run under this machine's clock instead of virtual time, on one thread: engines and "
      "applications act when they are polled. Prints how late they were, and whether the results "
      "can be trusted. One core keeps up with a few Gb/s in total, at round trips of about 100 us");
  command
      .option("--on-stop", options->on_stop,
              "when the host stops this process for more than 100 us: run-on, let the world's "
              "clock run (default); hold: stop that clock, too")
      .type("WHAT")
      .one_of({"run-on", "hold"})
      .needs(real_time);
  command
      .option("--scenario", options->scenario,
              "FILE is an experiment: run its scenario of this name, under --arm")
      .type("NAME");
  command.option("--arm", options->arm, "the arm of the experiment to run --scenario under")
      .type("NAME");
  command.flag("--check", options->check, "check the algorithms' invariants at every step (slow)");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Examples:\n"
      "  paceline emulate configs/scenarios/incast-64.toml\n"
      "  paceline emulate configs/scenarios/incast-64.toml --set cc.algorithm=cadence \\\n"
      "      --set cc.profile=default --seed 7\n"
      "  paceline emulate configs/experiments/first.toml --scenario moe-skew2 --arm cadence \\\n"
      "      --series-out series.csv\n"
      "  paceline emulate configs/scenarios/permutation-1024.toml --threads 2\n"
      "  paceline emulate configs/experiments/real-time.toml --scenario incast --arm cadence \\\n"
      "      --real-time\n"
      "  paceline emulate --topology fabric.topo --flows flows.txt --flows-out fct.csv\n"
      "  paceline emulate configs/scenarios/incast-16.toml --capture /tmp/host0.pcapng && \\\n"
      "      tshark -r /tmp/host0.pcapng -c 20\n"
      "A link is named as in [[event]]: host3 (its own), leaf0-spine1, spine4-core2, leaf0-leaf1, "
      "and #1, #2 ...\n"
      "for further parallel ones; with a topology file by its node numbers, 12-20.\n"
      "Exit status: 0 good, 1 the run failed or an invariant broke, 2 bad input, 130 interrupted.");
  command.callback([options, command, &exit_code] {
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
