// A fixed amount of work, to be counted from outside (instructions.py runs it under callgrind).
//
//   perf_probe incast:dcqcn 300000     a world, that many bytes per message; prints its hops
//   perf_probe probed:on 20            emulated NICs with probes, or probed:off; prints data
//   packets perf_probe events:cadence 100000   that many events through cc::dispatch; prints the
//   events
//
// The first number of the output is the amount of work; the rest shows what it consisted of.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "cc/registry.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tests/perf/cc_events.h"
#include "tests/perf/probed_world.h"
#include "tests/perf/worlds.h"

namespace paceline::perf {
namespace {

int run_events(const std::string& algorithm, std::uint64_t events) {
  EventCounts counts;
  if (algorithm == "dcqcn") {
    counts = drive_dcqcn(events, *cc::find(cc::AlgorithmId::dcqcn));
  } else if (algorithm == "dcqcn_plugin") {
    const cc::Registered loaded = load_plugin(PACELINE_DCQCN_PLUGIN);
    if (loaded.info == nullptr) throw std::invalid_argument(loaded.error);
    counts = drive_dcqcn(events, *loaded.info);
  } else if (algorithm == "cadence") {
    counts = drive_cadence(events);
  } else {
    throw std::invalid_argument("unknown algorithm '" + algorithm +
                                "': dcqcn, dcqcn_plugin, cadence");
  }
  const auto of = [&counts](cc::Signal s) { return counts.by_signal[static_cast<std::size_t>(s)]; };
  std::printf("%" PRIu64 " events: tick %" PRIu64 ", cnp %" PRIu64 ", grant %" PRIu64
              ", share %" PRIu64 ", message %" PRIu64 ", idle %" PRIu64 "; %" PRIu64
              " REQUESTs, mean rate %" PRIu64 " Mb/s\n",
              counts.total(), of(cc::Signal::tick), of(cc::Signal::cnp), of(cc::Signal::grant),
              of(cc::Signal::share), of(cc::Signal::message), of(cc::Signal::idle), counts.requests,
              counts.rate_sum / counts.total());
  return 0;
}

int run_world(const WorldCase& which) {
  const config::Scenario scenario = scenario_of(which);
  VirtualWorld world(scenario, plan_of(scenario));
  run_to_completion(world);
  std::printf("%" PRIu64 " hops, %" PRIu64 " events, trace hash %016" PRIx64 "\n",
              world.network().stats().hops, world.events(), world.trace_hash());
  return 0;
}

int run_probed(const std::string& probes, std::uint64_t messages) {
  if (probes != "on" && probes != "off") throw std::invalid_argument("probed: on, off");
  const ProbedCounts counts = run_probed_world(probes == "on", messages);
  std::printf("%" PRIu64 " packets of data, %" PRIu64 " probes answered\n", counts.packets,
              counts.probes);
  return 0;
}

int run(const std::string& what, const char* size_text) {
  char* end = nullptr;
  const std::uint64_t size = std::strtoull(size_text, &end, 10);
  const std::size_t colon = what.find(':');
  if (*end != '\0' || size == 0 || colon == std::string::npos) {
    throw std::invalid_argument(
        "usage: perf_probe incast|moe|permutation-1024|permutation-8192:ALGORITHM BYTES, or "
        "perf_probe events:ALGORITHM EVENTS, or perf_probe probed:on|off MESSAGES");
  }
  const std::string algorithm = what.substr(colon + 1);
  if (what.starts_with("events:")) return run_events(algorithm, size);
  if (what.starts_with("probed:")) return run_probed(algorithm, size);
  return run_world({what.substr(0, colon), algorithm, size, 4096});
}

}  // namespace
}  // namespace paceline::perf

int main(int argc, char** argv) {
  try {
    return paceline::perf::run(argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perf_probe: %s\n", error.what());
    return 2;
  }
}
