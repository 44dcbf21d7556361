// `paceline tuner`: the online tuner in virtual time, and the search that makes its presets.

#include "tools/tuning/tuner_command.h"

#include <fmt/format.h>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/host/tuner_host_commands.h"

namespace paceline::tools {

void TunerInput::add_to(const config::Command& command) {
  input.add_to(command, "scenario whose traffic does not end (TOML)", true);
  command
      .option("--wave", wave,
              "the workload starts again this often (not for open_loop, which does not end)")
      .type("TIME");
  command.option("--window", window, "of the tuner").type("TIME").shows_default();
  command.option("--block", block, "windows in a block").shows_default().within(4, 10'000);
  take_shipped_files(
      command.option("--presets", presets, "presets (TOML), as configs/presets/dcqcn.toml")
          .type("FILE"));
  command.flag("-q,--quiet", quiet, "no progress");
}

config::Read<TunerTask> read_tuner_task(const TunerInput& options) {
  config::Read<TunerTask> out;
  config::ReaderOptions reader;
  reader.algorithms = cc::algorithms();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return {{}, std::move(read.errors)};
  auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return {{}, std::move(prepared.errors)};
  TunerTask& task = out.value;
  task.prepared = std::move(prepared.value);
  const config::Scenario& scenario = task.prepared.scenario;
  task.algorithm = cc::find(scenario.cc.algorithm);
  cc::PortFacts facts;
  facts.link_rate = scenario.fabric.rate;
  facts.telemetry = config::has_telemetry(scenario);
  facts.notices = scenario.fabric.notice.enabled;
  std::string error;
  task.champion =
      resolve_cc(scenario.cc.algorithm, scenario.cc.profile, scenario.cc.params, facts, error);
  if (!error.empty()) out.errors.push_back(options.input.file + ": " + error);

  const auto time = [&](const char* name, const std::string& text, Picos& into) {
    const auto parsed = config::parse_time(text);
    if (!parsed.ok()) {
      out.errors.push_back(fmt::format("{} {}: {}", name, text, parsed.error));
    } else if (parsed.value < picos_from_micros(10)) {
      out.errors.push_back(fmt::format("{} {}: allowed is 10us or more", name, text));
    } else {
      into = parsed.value;
    }
  };
  time("--window", options.window, task.world.window);
  if (!options.wave.empty()) time("--wave", options.wave, task.world.wave);
  const bool open = scenario.workload.kind == "open_loop";
  if (open && !options.wave.empty()) {
    out.errors.emplace_back("--wave: open_loop traffic does not end, so it cannot start again");
  } else if (!open && options.wave.empty()) {
    out.errors.push_back(
        fmt::format("workload.kind = \"{}\" ends: --wave TIME says how often it starts again",
                    scenario.workload.kind));
  }
  task.world.block_windows = options.block;
  if (!options.presets.empty()) {
    auto library = tuner::online::read_presets_file(options.presets, cc::algorithms());
    out.errors.insert(out.errors.end(), library.errors.begin(), library.errors.end());
    task.presets = std::move(library.value);
    if (library.ok() && task.presets.algorithm != scenario.cc.algorithm) {
      out.errors.push_back(fmt::format("{}: presets of {}, but the scenario runs {}",
                                       options.presets, task.presets.algorithm,
                                       scenario.cc.algorithm));
    }
  }
  return out;
}

void add_tuner_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "tuner", "the online tuner: on a running host, in virtual time, and its presets");
  command.require_subcommand();
  command.footer(
      "Examples:\n"
      "  paceline tuner simulate configs/scenarios/online/incast-waves.toml --wave 1ms\n"
      "  paceline tuner search configs/scenarios/online/incast-waves.toml --wave 1ms --name "
      "incast\n"
      "  paceline tuner mode advise --why \"what would it do?\"\n"
      "  paceline tuner status");
  add_tuner_simulate(command, exit_code);
  add_tuner_search(command, exit_code);
  add_tuner_host_commands(command, exit_code);
}

}  // namespace paceline::tools
