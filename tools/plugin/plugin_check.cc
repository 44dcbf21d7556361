#include "tools/plugin/plugin_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/workload/generators.h"

namespace paceline::tools {
namespace {

// Eight hosts, or as many as given, send to one more; some tests add keys to [fabric] and tables at
// the end.
struct CheckScenario {
  const char* bytes = "200kB";
  std::string fabric;
  std::string events;
  std::string params;
  unsigned fan_in = 8;
};

struct CheckedRun {
  std::string problem;
  std::uint64_t hash = 0;
  telemetry::EngineCounters counters{};
};

std::string toml_of(const cc::AlgorithmInfo& plugin, const CheckScenario& s) {
  return fmt::format(
      "seed = 3\nmax_hops = 20000000\n[fabric]\nhosts = {}\n{}\n{}[cc]\nalgorithm = "
      "\"{}\"\nfallback = \"dcqcn\"\n{}\n"
      "[workload]\nkind = \"incast\"\nfan_in = {}\nmessage_bytes = \"{}\"\nstart_jitter = "
      "\"1us\"\n",
      s.fan_in + 1, s.fabric, s.events, plugin.name, s.params, s.fan_in, s.bytes);
}

CheckedRun run_checked(const cc::AlgorithmInfo& plugin, const CheckScenario& s) {
  CheckedRun run;
  const auto read = config::read_scenario_text(toml_of(plugin, s), "check", ".", reader_options());
  if (!read.ok()) {
    run.problem = read.errors.front();
    return run;
  }
  WorldOptions options;
  options.check_invariants = true;
  options.progress = [](double) { PluginTimeLimit::passed(); };
  try {
    const config::Scenario& scenario = read.value;
    VirtualWorld world(scenario,
                       workload::incast(scenario.workload, scenario.fabric.hosts, scenario.seed),
                       std::move(options));
    const RunEnd end = world.run();
    for (std::uint32_t h = 0; h < world.hosts(); ++h) run.counters += world.engine(h).counters();
    run.hash = world.trace_hash();
    if (end != RunEnd::completed) {
      run.problem =
          fmt::format("the run ended as '{}' with {} of {} messages done {}", to_string(end),
                      world.messages_completed(), world.plan().messages.size(), world.problem());
    } else if (world.messages_failed() != 0) {
      run.problem = fmt::format("{} messages failed", world.messages_failed());
    } else if (run.counters.plugin_quarantines != 0) {
      run.problem = "it was put into quarantine";
    }
  } catch (const std::exception& error) {
    run.problem = error.what();
  }
  return run;
}

std::string mended(const telemetry::EngineCounters& counters) {
  if (counters.plugin_nonsense + counters.plugin_clamped == 0) return {};
  return fmt::format("{} decisions out of bounds and {} beyond sense had to be mended",
                     counters.plugin_clamped, counters.plugin_nonsense);
}

// Setting a rate beyond the link is refused: the end to try is what this link allows.
double end_of_range(const cc::ParamSpec& spec, bool high, double link_mbps) {
  if (high && spec.unit == "Mb/s") return std::min(spec.max, std::max(link_mbps, spec.min));
  return high ? spec.max : spec.min;
}

}  // namespace

std::vector<CheckResult> check_plugin(const cc::AlgorithmInfo& plugin) {
  constexpr double kLinkMbps = 100'000;  // of a scenario that does not say
  std::vector<CheckResult> results;
  if (const cc::plugin::Plugin* const loaded = cc::plugin_of(plugin.id)) {
    results.push_back({"it touches only the memory that it is given", out_of_bounds(*loaded)});
    // A plug-in that writes outside its memory would only damage the runs below.
    if (!results.back().problem.empty()) return results;
  }
  const CheckedRun plain = run_checked(plugin, {});
  results.push_back({"an incast of eight is served", plain.problem});
  results.push_back({"its decisions are within bounds", mended(plain.counters)});
  const CheckedRun again = run_checked(plugin, {});
  results.push_back({"the same run gives the same trace",
                     again.hash == plain.hash ? "" : "two runs of one seed differ"});

  CheckScenario lossy;
  lossy.fabric = "loss = 1e-3";
  results.push_back({"it recovers from loss", run_checked(plugin, lossy).problem});
  CheckScenario flap;
  flap.events =
      "[[event]]\nat = \"30us\"\nlink = \"host8\"\naction = \"down\"\n"
      "[[event]]\nat = \"500us\"\nlink = \"host8\"\naction = \"up\"\n";
  results.push_back({"it recovers from a link that was down", run_checked(plugin, flap).problem});

  if (plugin.proactive) {
    CheckScenario deaf;
    deaf.fabric = "drop_control_ppm = 50000";
    results.push_back(
        {"it recovers from loss of REQUESTs and GRANTs", run_checked(plugin, deaf).problem});
    CheckScenario many;
    many.fan_in = 48;
    many.bytes = "20kB";
    results.push_back({"many senders with little are served", run_checked(plugin, many).problem});
  }

  for (const cc::ParamSpec& spec : plugin.params) {
    for (const bool high : {false, true}) {
      CheckScenario s;
      s.bytes = "100kB";
      const double value = end_of_range(spec, high, kLinkMbps);
      s.params = fmt::format("params = {{ {} = {} }}", spec.name, cc::number_text(value));
      const CheckedRun run = run_checked(plugin, s);
      results.push_back(
          {fmt::format("{} = {}: live, within bounds", spec.name, cc::number_text(value)),
           run.problem.empty() ? mended(run.counters) : run.problem});
    }
  }
  return results;
}

}  // namespace paceline::tools
