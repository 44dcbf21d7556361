// `paceline diagnose` names what holds up a scenario, a running testbed or a fleet, and why;
// `paceline faults` lists the faults that a scenario can have.

#include "tools/diagnose/diagnose_command.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "control/diagnosis/diagnosis.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/diagnose/diagnosis_page.h"
#include "tools/diagnose/diagnosis_text.h"
#include "tools/diagnose/world_evidence.h"

namespace paceline::tools {

namespace {

struct DiagnoseOptions {
  InputOptions input;
  std::string testbed;  // this, fleet and replay empty: a scenario
  std::string socket;
  std::string fleet;
  std::string replay;
  std::string record;
  std::string lasts = "5s";
  std::string json;
  std::string html;
  bool quiet = false;
};

// Prints the verdicts, and writes them where they are asked for.
int tell(const DiagnoseOptions& options, const std::string& name, std::uint64_t seed,
         const diagnosis::Evidence& evidence) {
  const auto verdicts = diagnosis::diagnose(evidence);
  try {
    if (!options.json.empty()) {
      experiment::write_results_file(options.json, diagnosis_json(name, seed, evidence, verdicts));
    }
    if (!options.html.empty()) {
      experiment::write_results_file(options.html, diagnosis_page(name, seed, evidence, verdicts));
    }
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  if (!options.quiet) fmt::print("{}", diagnosis_text(evidence, verdicts));
  return kExitGood;
}

int diagnose_scenario(const DiagnoseOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return report_errors(prepared.errors);
  for (const std::string& file : {options.json, options.html}) {
    if (const auto errors = check_output(file); !errors.empty()) return report_errors(errors);
  }
  const config::Scenario& scenario = prepared.value.scenario;
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  RunControl control;
  control.stop = &Interrupt::flag();
  control.progress = [&](double share) { line.show(share, std::nan(""), scenario.name); };
  ObservedRun observed;
  try {
    observed = observe_scenario(prepared.value, scenario.seed, control);
  } catch (const std::invalid_argument& error) {
    return report_errors({options.input.file + ": " + error.what()});
  }
  line.clear();
  if (observed.run.end == RunEnd::stopped) return kExitInterrupted;
  return tell(options, scenario.name, scenario.seed, observed.evidence);
}

// Diagnoses what runs, or ran, in real time.
int diagnose_running(const DiagnoseOptions& options, const WatchTestbed& watch) {
  const auto lasts = config::parse_time(options.lasts);
  if (!lasts.error.empty()) return report_errors({"--for: " + lasts.error});
  if (lasts.value < picos_from_micros(100'000) || picos_from_micros(3'600'000'000) < lasts.value) {
    return report_errors({fmt::format("--for {}: allowed are 100ms to 3600s", options.lasts)});
  }
  for (const std::string& file : {options.json, options.html, options.record}) {
    if (const auto errors = check_output(file); !errors.empty()) return report_errors(errors);
  }
  const Interrupt interrupt;
  ProgressLine line(options.quiet);
  const std::string what =
      options.fleet.empty() ? "testbed " + options.testbed : "fleet " + options.fleet;
  const WatchedTestbed watched = watch(
      {options.testbed, options.socket, options.fleet, options.replay, options.record, lasts.value},
      [&](double share, double seconds_left) { line.show(share, seconds_left, what); });
  line.clear();
  if (watched.interrupted) return kExitInterrupted;
  if (!watched.errors.empty()) {
    report_errors(watched.errors);
    return watched.exit_code;
  }
  for (const std::string& note : watched.notes) {
    fmt::print(stderr, "paceline: note: {}\n", printable(note));
  }
  return tell(options, watched.name, 0, watched.evidence);
}

// Empty: the options fit together.
std::string misfit(const DiagnoseOptions& options) {
  const auto given = [](const std::string& text) { return text.empty() ? 0 : 1; };
  const int sources = given(options.input.file) + given(options.testbed) + given(options.fleet) +
                      given(options.replay);
  if (sources != 1) {
    return "diagnose: give a scenario file, or --testbed NAME, or --fleet FILE, or --replay FILE";
  }
  if (!options.socket.empty() && options.testbed.empty()) return "--socket is of --testbed";
  if (!options.record.empty() && options.testbed.empty() && options.fleet.empty()) {
    return "--record keeps what --testbed or --fleet watches";
  }
  return {};
}

void list_faults() {
  for (const config::FaultKindInfo& kind : config::fault_kinds()) {
    fmt::print("{}\n  {}\n  target    {}\n", kind.name, kind.meaning, target_text(kind.target));
    if (kind.most != 0) {
      fmt::print("  severity  {}; {} .. {}, default {}\n", kind.severity, kind.least, kind.most,
                 kind.usual);
    }
    if (kind.one_direction) fmt::print("  direction \"both\", \"up\" or \"down\"\n");
    if (kind.draws) fmt::print("  seed      of its chance\n");
    if (!kind.not_on_testbeds.empty()) {
      fmt::print("  where     scenarios; {}\n", kind.not_on_testbeds);
    } else {
      fmt::print("  where     scenarios, testbeds\n");
    }
  }
}

}  // namespace

void add_diagnose_command(const config::Command& app, int& exit_code, const WatchTestbed& watch) {
  auto options = std::make_shared<DiagnoseOptions>();
  const config::Command command = app.subcommand(
      "diagnose", "name what holds up a scenario, a running testbed or a fleet, and why");
  options->input.add_to(command, "scenario (TOML), run in virtual time", false);
  command
      .option("--testbed", options->testbed,
              "watch this running testbed instead (`default`, unless it was given a --name)")
      .type("NAME");
  command.option("--socket", options->socket,
                 "socket of its service, instead of the one that follows from the name");
  command
      .option("--fleet", options->fleet, "watch the hosts of this file instead, by their pacelined")
      .type("FILE.toml");
  command.option("--for", options->lasts, "how long to watch: 100ms to 3600s").shows_default();
  command
      .option("--record", options->record,
              "keep what hosts report of a testbed or a fleet, also if Ctrl-C ends the command")
      .type("FILE.jsonl");
  command.option("--replay", options->replay, "judge what --record kept").type("FILE.jsonl");
  command.option("--json", options->json, "write verdicts and evidence").type("FILE.json");
  command
      .option("--html", options->html, "write a page: verdicts, time series, which pairs are slow")
      .type("FILE.html");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Examples:\n"
      "  paceline diagnose configs/scenarios/slow-nic.toml\n"
      "  paceline diagnose configs/scenarios/slow-nic.toml --seed 7 --json verdicts.json\n"
      "  paceline diagnose configs/scenarios/slow-nic.toml --html slow-nic.html\n"
      "  paceline diagnose --testbed default --for 10s   while programs run on it\n"
      "  paceline diagnose --fleet fleet.toml --for 10s --record looks.jsonl\n"
      "  paceline diagnose --replay looks.jsonl --html page.html\n"
      "A fleet file has the fabric as a scenario has it, and in its order the hosts' NICs:\n"
      "  fabric = { topology = \"leaf_spine\", leaves = 2, hosts_per_leaf = 2, spines = 2 }\n"
      "  [[host]]\n"
      "  name = \"a\"\n"
      "  url = \"https://a:7471\"    or unix:/PATH, or http:// at a tunnel's end\n"
      "  token_file = \"a.token\"    with ca = FILE, if the system does not trust its certificate\n"
      "  nics = [\"a0\", \"a1\"]       default: all NICs of the service\n"
      "  places = [0, 2]           their places in the fabric, if addresses and order do not tell\n"
      "Where switches hash, paths are known only for emulated fabrics; elsewhere the rules that\n"
      "need paths give no verdict.\n"
      "The rules use what hosts measure, not the queues of switches. There may be no verdict.\n"
      "Exit status: 0 with or without a verdict, 1 no service answers, 2 bad input,\n"
      "130 interrupted.");
  command.callback([options, watch, &exit_code] {
    if (const std::string wrong = misfit(*options); !wrong.empty()) {
      exit_code = report_errors({wrong});
    } else {
      exit_code = options->input.file.empty() ? diagnose_running(*options, watch)
                                              : diagnose_scenario(*options);
    }
  });

  const config::Command faults = app.subcommand(
      "faults", "what [[fault]] of a scenario and `paceline testbed fault` can inject");
  faults.require_subcommand();
  const config::Command list =
      faults.subcommand("list", "list the kinds: targets, severities, where they work");
  list.callback([&exit_code] {
    list_faults();
    exit_code = kExitGood;
  });
}

}  // namespace paceline::tools
