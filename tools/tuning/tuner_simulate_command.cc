// `paceline tuner simulate`: runs the online tuner on traffic in virtual time, prints its journal,
// and compares its parameters with the defaults and with the presets.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/text/number_text.h"
#include "tools/tuning/tuner_command.h"

namespace paceline::tools {

namespace {

using tuner::online::JournalEntry;

struct SimulateOptions {
  TunerInput task;
  std::uint32_t pairs = 30;
  std::uint32_t repetitions = 6;
  std::uint32_t blocks = 8;
  std::string mode = "auto";
  bool json = false;
};

struct Row {
  std::string name;
  experiment::MeanEstimate objective;  // J, over seeds
  experiment::MeanEstimate gain;       // over the first row, seed by seed
  std::string breach;
};

struct Named {
  std::string name;
  std::vector<double> values;
};

std::string interval_text(const experiment::MeanEstimate& estimate) {
  if (std::isnan(estimate.interval.low)) return fmt::format("{:+.4f}", estimate.mean);
  return fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", estimate.mean, estimate.interval.low,
                     estimate.interval.high);
}

// Runs each parameter set, held fixed, on seeds that neither tuner nor search has used.
std::vector<Row> compare(const TunerTask& task, const std::vector<Named>& sets,
                         const SimulateOptions& options, ProgressLine& line) {
  std::vector<Row> rows;
  std::vector<double> first;
  const double total = static_cast<double>(sets.size()) * options.repetitions;
  double done = 0;
  for (const Named& set : sets) {
    Row row;
    row.name = set.name;
    std::vector<double> values;
    for (std::uint32_t i = 0; i < options.repetitions; ++i) {
      TunerWorldOptions world = task.world;
      world.stop = &Interrupt::flag();
      const FixedRun run = run_fixed(
          task.prepared, config_of(task.prepared.scenario.cc, *task.algorithm, set.values), world,
          options.blocks, task.prepared.scenario.seed + 1'000'000 + i);
      if (Interrupt::flag().load()) return {};
      double sum = 0;
      for (const double j : run.objective) sum += j;
      values.push_back(sum / static_cast<double>(run.objective.size()));
      if (row.breach.empty()) row.breach = run.breach;
      line.show(++done / total, std::nan(""), "comparing " + set.name);
    }
    if (first.empty()) first = values;
    std::vector<double> gains;
    for (std::size_t i = 0; i < values.size(); ++i) gains.push_back(values[i] - first[i]);
    row.objective = experiment::t_interval(values, 0.95);
    row.gain = experiment::t_interval(gains, 0.95);
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json json_of(const experiment::MeanEstimate& estimate) {
  nlohmann::ordered_json out{{"mean", experiment::rounded(estimate.mean)}};
  if (!std::isnan(estimate.interval.low)) {
    out["low"] = experiment::rounded(estimate.interval.low);
    out["high"] = experiment::rounded(estimate.interval.high);
  }
  return out;
}

void print_json(const TunedRun& tuned, const std::vector<Row>& rows) {
  nlohmann::ordered_json out;
  out["kind"] = "paceline tuner simulation";
  out["pairs"] = tuned.status.pairs;
  out["windows"] = tuned.windows;
  out["signature"] = tuned.status.signature;
  out["incumbent"] = tuned.status.incumbent_name;
  out["longest_breach_us"] = tuned.longest_breach_ns / 1000;
  auto& table = out["table"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    table.push_back({{"name", row.name},
                     {"objective", json_of(row.objective)},
                     {"gain", json_of(row.gain)},
                     {"breach", row.breach}});
  }
  auto& journal = out["journal"] = nlohmann::ordered_json::array();
  for (const JournalEntry& entry : tuned.journal) {
    journal.push_back(nlohmann::ordered_json::parse(tuner::online::journal_json(entry)));
  }
  fmt::print("{}\n", out.dump(1));
}

void print_text(const TunedRun& tuned, const std::vector<Row>& rows) {
  for (const JournalEntry& entry : tuned.journal) {
    fmt::print("{:>9.1f} ms  {:<10} {}{}{}\n", static_cast<double>(entry.at_ns) / 1e6,
               to_string(entry.event), entry.name, entry.name.empty() ? "" : ": ", entry.reason);
    if (!entry.changes.empty() && entry.event != tuner::online::Event::dropped) {
      fmt::print("{:>24} {}\n", "", words_of(entry.changes));
    }
    if (entry.evidence.pairs > 0) {
      fmt::print("{:>24} change of J {:+.4f} [{:+.4f}, {:+.4f}], {} pairs\n", "",
                 entry.evidence.mean, entry.evidence.interval.low, entry.evidence.interval.high,
                 entry.evidence.pairs);
    }
  }
  fmt::print("\n{} pairs; the longest breach under the tuner's parameters lasted {} us\n\n",
             tuned.status.pairs, tuned.longest_breach_ns / 1000);
  fmt::print("  {:<34} {:<32} {:<32} {}\n", "parameters", "J", "gain", "constraints");
  for (const Row& row : rows) {
    fmt::print("  {:<34} {:<32} {:<32} {}\n", row.name, interval_text(row.objective),
               interval_text(row.gain), row.breach.empty() ? "kept" : row.breach);
  }
}

int run(const SimulateOptions& options) {
  auto read = read_tuner_task(options.task);
  if (!read.ok()) return report_errors(read.errors);
  TunerTask& task = read.value;
  const Interrupt interrupt;
  ProgressLine line(options.task.quiet);
  task.world.stop = &Interrupt::flag();
  task.world.progress = [&](double share) { line.show(share, std::nan(""), "tuning"); };
  tuner::online::TunerOptions tuner =
      tuner_options(task.world, task.prepared, task.prepared.scenario.seed);
  tuner.mode = *tuner::online::mode_of(options.mode);
  TunedRun tuned;
  std::vector<Row> rows;
  try {
    tuned = run_tuned(task.prepared, *task.algorithm, task.presets, task.champion, task.world,
                      tuner, options.pairs, task.prepared.scenario.seed);
    task.world.progress = nullptr;
    if (!Interrupt::flag().load() && options.repetitions > 0) {
      std::vector<Named> sets{{"default", task.champion},
                              {"tuned: " + tuned.status.incumbent_name, tuned.status.incumbent}};
      for (const auto& preset : task.presets.presets) {
        sets.push_back({"preset: " + preset.name,
                        tuner::online::values_of(preset, *task.algorithm, task.champion)});
      }
      rows = compare(task, sets, options, line);
    }
  } catch (const std::invalid_argument& error) {
    line.clear();
    return report_errors({options.task.input.file + ": " + error.what()});
  }
  line.clear();
  if (options.json) {
    print_json(tuned, rows);
  } else {
    print_text(tuned, rows);
  }
  if (Interrupt::flag().load()) {
    fmt::print(stderr, "paceline: interrupted; the output covers what ran before\n");
    return kExitInterrupted;
  }
  return kExitGood;
}

}  // namespace

void add_tuner_simulate(const config::Command& tuner, int& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  const config::Command command =
      tuner.subcommand("simulate", "run the online tuner on traffic in virtual time");
  options->task.add_to(command);
  command.option("--pairs", options->pairs, "end after this many block pairs")
      .shows_default()
      .within(1, 100'000);
  command
      .option("--repetitions", options->repetitions,
              "seeds for comparing default, tuned and preset parameters; 0: no comparison")
      .shows_default()
      .within(0, 1000);
  command.option("--blocks", options->blocks, "blocks in each run of the comparison")
      .shows_default()
      .within(1, 100'000);
  command.option("--mode", options->mode, "advise or auto")
      .shows_default()
      .one_of({"advise", "auto"});
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "Example:\n"
      "  paceline tuner simulate configs/scenarios/online/incast-waves.toml --wave 1300us \\\n"
      "      --presets configs/presets/dcqcn.toml\n"
      "Exit status: 0 good, 2 bad input, 130 interrupted.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
