// `paceline diagnose` names what holds up a scenario, and why; `paceline faults` lists the faults
// that a scenario can have.

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "control/diagnosis/diagnosis.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/diagnose/diagnosis_text.h"
#include "tools/diagnose/world_evidence.h"

namespace paceline::tools {

namespace {

struct DiagnoseOptions {
  InputOptions input;
  std::string json;
  bool quiet = false;
};

int diagnose_scenario(const DiagnoseOptions& options) {
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return report_errors(prepared.errors);
  if (const auto errors = check_output(options.json); !errors.empty()) return report_errors(errors);
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
  const auto verdicts = diagnosis::diagnose(observed.evidence);
  if (!options.json.empty()) {
    try {
      experiment::write_results_file(
          options.json, diagnosis_json(scenario.name, scenario.seed, observed.evidence, verdicts));
    } catch (const experiment::ResultsFileError& error) {
      return report_errors(error.errors());
    }
  }
  if (!options.quiet) fmt::print("{}", diagnosis_text(observed.evidence, verdicts));
  return kExitGood;
}

void list_faults() {
  for (const config::FaultKindInfo& kind : config::fault_kinds()) {
    fmt::print("{}\n  {}\n  target    {}\n", kind.name, kind.meaning, target_text(kind.target));
    if (kind.most != 0) {
      fmt::print("  severity  {}; {} .. {}, default {}\n", kind.severity, kind.least, kind.most,
                 kind.usual);
    }
    if (kind.one_direction) fmt::print("  direction \"both\", \"up\" or \"down\"\n");
  }
}

}  // namespace

void add_diagnose_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand(
      "diagnose", "run a scenario in virtual time and name what holds it up, and why");
  options->input.add_to(*command, "scenario (TOML)", true);
  command->add_option("--json", options->json, "write verdicts and evidence")
      ->type_name("FILE.json");
  command->add_flag("-q,--quiet", options->quiet, "print nothing but errors");
  command->footer(
      "Examples:\n"
      "  paceline diagnose configs/scenarios/slow-nic.toml\n"
      "  paceline diagnose configs/scenarios/slow-nic.toml --seed 7 --json verdicts.json\n"
      "The rules use what hosts measure, not the queues of switches. There may be no verdict.\n"
      "Exit status: 0 with or without a verdict, 2 bad input, 130 interrupted.");
  command->callback([options, &exit_code] { exit_code = diagnose_scenario(*options); });

  CLI::App* faults =
      app.add_subcommand("faults", "the faults that [[fault]] can inject into a scenario");
  faults->require_subcommand(1);
  CLI::App* list =
      faults->add_subcommand("list", "list the kinds with their targets and severities");
  list->callback([&exit_code] {
    list_faults();
    exit_code = kExitGood;
  });
}

}  // namespace paceline::tools
