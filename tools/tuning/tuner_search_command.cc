// `paceline tuner search`: the best parameter set for continuous traffic, by the objective and
// under the constraints of the online tuner, as a preset for it.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/experiment/analysis/statistics.h"
#include "control/experiment/results/results_file.h"
#include "control/experiment/text/number_text.h"
#include "control/tuner/online/candidates/climb.h"
#include "control/tuner/search_record.h"
#include "control/tuner/tpe.h"
#include "dataplane/base/numbers/random.h"
#include "tools/tuning/tuner_command.h"

namespace paceline::tools {

namespace {

using tuner::Candidate;
using tuner::Score;

// Candidates proposed before any of them is judged. Fixed, so that --jobs changes nothing.
constexpr std::size_t kProposals = 4;

struct SearchOptions {
  TunerInput task;
  std::string name;
  std::string out = "presets.toml";
  std::uint32_t evaluations = 120;
  std::uint32_t repetitions = 2;
  std::uint32_t validation = 6;
  std::uint32_t finalists = 6;
  std::uint32_t blocks = 6;
  unsigned jobs = 0;
};

class Evaluator {
 public:
  Evaluator(const TunerTask& task, std::uint32_t blocks, unsigned jobs)
      : task_(task), blocks_(blocks), jobs_(jobs) {}

  // By candidate and seed; empty when interrupted.
  std::vector<std::vector<FixedRun>> runs(const std::vector<std::vector<double>>& candidates,
                                          const std::vector<std::uint64_t>& seeds) const {
    std::vector<std::vector<FixedRun>> out(candidates.size(), std::vector<FixedRun>(seeds.size()));
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < candidates.size() * seeds.size(); i = next++) {
        TunerWorldOptions world = task_.world;
        world.stop = &Interrupt::flag();
        FixedRun& run = out[i / seeds.size()][i % seeds.size()];
        try {
          run = run_fixed(
              task_.prepared,
              config_of(task_.prepared.scenario.cc, *task_.algorithm, candidates[i / seeds.size()]),
              world, blocks_, seeds[i % seeds.size()]);
        } catch (const std::invalid_argument& error) {
          run.breach = error.what();
        }
      }
    };
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 1; i < jobs_; ++i) threads.emplace_back(work);
      work();
    }
    if (Interrupt::flag().load()) out.clear();
    return out;
  }

 private:
  const TunerTask& task_;
  std::uint32_t blocks_;
  unsigned jobs_;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? std::nan("") : sum / static_cast<double>(values.size());
}

Score score_of(const std::vector<FixedRun>& runs) {
  Score out;
  for (const FixedRun& run : runs) {
    out.objective += mean_of(run.objective) / static_cast<double>(runs.size());
    if (run.breach.empty() && run.finished) continue;
    out.excess += run.finished ? run.breaches : 10;
    if (out.broken_limit.empty()) out.broken_limit = run.finished ? run.breach : "did not finish";
  }
  if (!std::isfinite(out.objective)) out.excess += 10;
  return out;
}

std::vector<std::uint64_t> seeds_from(std::uint64_t seed, std::uint64_t stream, std::uint32_t n) {
  Random random(seed, stream);
  std::vector<std::uint64_t> out(n);
  for (std::uint64_t& each : out) each = random.next() >> 32;
  return out;
}

std::string command_of(const SearchOptions& options, std::uint64_t seed) {
  std::string out = "paceline tuner search " + options.task.input.file;
  if (!options.task.wave.empty()) out += " --wave " + options.task.wave;
  out += fmt::format(
      " --window {} --block {} --blocks {} --evaluations {} --repetitions {} --finalists {} "
      "--validation {} --seed {} --name {}",
      options.task.window, options.task.block, options.blocks, options.evaluations,
      options.repetitions, options.finalists, options.validation, seed, options.name);
  return out;
}

// Puts the preset into the file: in the place of one with its name, or as the last one.
int keep(const SearchOptions& options, const TunerTask& task, tuner::online::Preset preset) {
  tuner::online::PresetLibrary library;
  if (std::filesystem::exists(options.out)) {
    auto read = tuner::online::read_presets_file(options.out, cc::algorithms());
    if (!read.ok()) return report_errors(read.errors);
    library = std::move(read.value);
  }
  library.algorithm = task.algorithm->name;
  library.emulator = PACELINE_VERSION;
  const auto same = std::find_if(library.presets.begin(), library.presets.end(),
                                 [&](const auto& each) { return each.name == preset.name; });
  if (same != library.presets.end()) {
    *same = std::move(preset);
  } else {
    library.presets.push_back(std::move(preset));
  }
  try {
    experiment::write_results_file(options.out, tuner::online::presets_text(library));
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return kExitGood;
}

int run(const SearchOptions& options) {
  auto read = read_tuner_task(options.task);
  if (!read.ok()) return report_errors(read.errors);
  const TunerTask& task = read.value;
  if (const auto errors = check_output(options.out); !errors.empty()) return report_errors(errors);
  std::vector<tuner::DimensionRequest> requests;
  for (const std::size_t p : tuner::online::tuned_params(*task.algorithm)) {
    requests.push_back({std::string(task.algorithm->params[p].name), {}, {}});
  }
  std::vector<std::string> errors;
  const tuner::SearchSpace space(*task.algorithm, task.champion, requests, errors);
  if (!errors.empty()) return report_errors(errors);

  const std::uint64_t seed = task.prepared.scenario.seed;
  const unsigned jobs =
      options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  const Evaluator evaluator(task, options.blocks, jobs);
  const auto search_seeds = seeds_from(seed, 1, options.repetitions);
  const auto new_seeds = seeds_from(seed, 2, options.validation);
  const Interrupt interrupt;
  ProgressLine line(options.task.quiet);
  const double begin = wall_seconds();
  tuner::Tpe tpe(space.size(), seed);
  std::vector<Candidate> candidates;
  while (candidates.size() < options.evaluations) {
    std::vector<std::vector<double>> points;
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < kProposals && candidates.size() + i < options.evaluations; ++i) {
      const bool first = candidates.empty() && i == 0;
      points.push_back(first ? space.start_point() : tpe.ask());
      values.push_back(first ? space.start_values() : space.values_of(points.back()));
    }
    const auto runs = evaluator.runs(values, search_seeds);
    if (runs.empty()) break;
    for (std::size_t i = 0; i < values.size(); ++i) {
      candidates.push_back({values[i], score_of(runs[i]), false, {}});
      tpe.tell(points[i], candidates.back().score);
    }
    const double share = static_cast<double>(candidates.size()) / options.evaluations;
    const double spent = wall_seconds() - begin;
    const Score& best = candidates[tuner::finalists(candidates, 1).front()].score;
    line.show(share, spent * (1 - share) / share,
              fmt::format("{} candidates, best J {:+.4f}", candidates.size(), best.objective));
  }
  // The best few once more, on seeds that the search has not seen; the champion with them.
  std::vector<FixedRun> champion;
  std::vector<FixedRun> winner;
  std::size_t won = 0;
  if (!Interrupt::flag().load()) {
    auto chosen = tuner::finalists(candidates, options.finalists);
    for (const std::size_t index : chosen) {
      auto runs = evaluator.runs({candidates[index].values}, new_seeds);
      if (runs.empty()) break;
      candidates[index].validated = true;
      candidates[index].validation = score_of(runs.front());
      if (index == 0) champion = runs.front();
      if (tuner::winner(candidates) == &candidates[index]) {
        winner = runs.front();
        won = index;
      }
    }
  }
  line.clear();
  if (Interrupt::flag().load()) {
    fmt::print(stderr, "paceline: interrupted: nothing written\n");
    return kExitInterrupted;
  }
  if (winner.empty() || won == 0) {
    fmt::print("Nothing better than the scenario's own parameters was found{}.\n",
               winner.empty() ? ": no candidate keeps the constraints on new seeds" : "");
    return kExitGood;
  }
  std::vector<double> gains;
  for (std::size_t i = 0; i < new_seeds.size(); ++i) {
    gains.push_back(mean_of(winner[i].objective) - mean_of(champion[i].objective));
  }
  const experiment::MeanEstimate gain = experiment::t_interval(gains, 0.95);
  tuner::online::Preset preset;
  preset.name = options.name;
  preset.command = command_of(options, seed);
  preset.gain = experiment::rounded(gain.mean, 4);
  preset.gain_sd = std::max(1e-3, experiment::rounded(gain.sd, 3));
  preset.signature = winner.front().signature;
  for (const tuner::Dimension& dimension : space.dimensions()) {
    preset.params.push_back({std::string(task.algorithm->params[dimension.param].name),
                             candidates[won].values[dimension.param]});
  }
  fmt::print("{}: J {:+.4f} -> {:+.4f} on {} new seeds, gain {:+.4f} [{:+.4f}, {:+.4f}]; {}\n",
             options.name, candidates.front().validation.objective,
             candidates[won].validation.objective, new_seeds.size(), gain.mean, gain.interval.low,
             gain.interval.high, preset.signature.words());
  for (const auto& param : preset.params) {
    fmt::print("  {} = {}\n", param.name, cc::number_text(param.value));
  }
  const int code = keep(options, task, std::move(preset));
  if (code == kExitGood) fmt::print("{}\n", options.out);
  return code;
}

}  // namespace

void add_tuner_search(const config::Command& tuner, int& exit_code) {
  auto options = std::make_shared<SearchOptions>();
  const config::Command command = tuner.subcommand(
      "search", "a preset for the online tuner: the best parameters for this traffic");
  options->task.add_to(command);
  command.option("--name", options->name, "of the preset").required();
  command.option("--out", options->out, "presets file; others in it stay").shows_default();
  const auto count = [&](const char* name, std::uint32_t& into, const char* words, int most) {
    command.option(name, into, words).shows_default().within(1, most);
  };
  count("--evaluations", options->evaluations, "candidates to try", 100'000);
  count("--repetitions", options->repetitions, "seeds per candidate", 1000);
  count("--finalists", options->finalists, "best candidates tried on new seeds", 1000);
  count("--blocks", options->blocks, "blocks per run", 100'000);
  command.option("--validation", options->validation, "new seeds for them")
      .shows_default()
      .within(2, 1000);
  command.option("-j,--jobs", options->jobs, "runs at a time (default: one per core)")
      .within(1, 1024);
  command.footer(
      "Example:\n"
      "  paceline tuner search configs/scenarios/online/websearch.toml --name websearch-80 "
      "--out presets.toml\n"
      "Exit status: 0 good, 2 bad input, 130 interrupted (nothing is written).");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
