#include "tests/sim/figure.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::simtest {

double Watched::goodput(double from_us, double to_us) const {
  return static_cast<double>(accepted.at(at(to_us)) - accepted.at(at(from_us))) * 8 /
         ((to_us - from_us) * 1'000);
}

double Watched::rate(std::uint32_t host, double from_us, double to_us) const {
  const auto bytes = static_cast<double>(sent.at(at(to_us))[host] - sent.at(at(from_us))[host]);
  return bytes * 8 / ((to_us - from_us) * 1'000);
}

std::vector<double> Watched::rates(const std::vector<std::uint32_t>& hosts, double from_us,
                                   double to_us) const {
  std::vector<double> out;
  for (const std::uint32_t host : hosts) out.push_back(rate(host, from_us, to_us));
  return out;
}

double Watched::queue_mean(double from_us, double to_us) const {
  double sum = 0;
  for (std::size_t i = at(from_us); i < at(to_us); ++i) sum += static_cast<double>(queue[i]);
  return sum / static_cast<double>(at(to_us) - at(from_us));
}

double Watched::queue_deviation(double from_us, double to_us) const {
  const double mean = queue_mean(from_us, to_us);
  double squares = 0;
  for (std::size_t i = at(from_us); i < at(to_us); ++i) {
    squares += std::pow(static_cast<double>(queue[i]) - mean, 2);
  }
  return std::sqrt(squares / static_cast<double>(at(to_us) - at(from_us)));
}

std::uint64_t Watched::queue_least(double from_us, double to_us) const {
  return *std::min_element(queue.begin() + static_cast<std::ptrdiff_t>(at(from_us)),
                           queue.begin() + static_cast<std::ptrdiff_t>(at(to_us)));
}

std::uint64_t Watched::queue_most(double from_us, double to_us) const {
  return *std::max_element(queue.begin() + static_cast<std::ptrdiff_t>(at(from_us)),
                           queue.begin() + static_cast<std::ptrdiff_t>(at(to_us)));
}

Watched watch_flows(const std::string& toml, const std::vector<FigureFlow>& flows,
                    std::uint32_t watched_host, double length_us, double interval_us,
                    const FigureWiring& wiring, const std::vector<FigureHost>& unlike) {
  auto read = config::read_scenario_text(toml, "figure", PACELINE_SOURCE_DIR,
                                         {.algorithms = cc::algorithms(), .overrides = {}});
  REQUIRE(read.errors == std::vector<std::string>{});
  config::Scenario s = std::move(read.value);
  if (!wiring.links.empty()) {
    s.fabric.topology = "file";
    s.fabric.hosts = wiring.hosts;
    s.fabric.switches = wiring.switches;
    s.fabric.links = wiring.links;
  }
  // The sample at the end is seen, too.
  s.duration = picos_from_nanos(static_cast<std::int64_t>((length_us + interval_us / 2) * 1e3));
  MessagePlan plan;
  constexpr std::uint64_t kEndless = 1'000'000'000'000;
  for (const FigureFlow& flow : flows) {
    plan.messages.push_back(
        {.src = flow.from,
         .dst = flow.to,
         .bytes = kEndless,
         .start = picos_from_nanos(static_cast<std::int64_t>(flow.start_us * 1e3))});
  }
  std::stable_sort(
      plan.messages.begin(), plan.messages.end(),
      [](const PlannedMessage& a, const PlannedMessage& b) { return a.start < b.start; });
  Watched out;
  out.interval_us = interval_us;
  WorldOptions options;
  options.check_invariants = true;
  options.sample_interval = picos_from_nanos(static_cast<std::int64_t>(interval_us * 1e3));
  options.sample = [&out, watched_host](const VirtualWorld& world, Picos at) {
    // A look at a queue needs a mutable network; it changes no result (network.h).
    auto& network = const_cast<VirtualWorld&>(world).network();
    out.queue.push_back(network.queue_bytes(network.topology().host_downlink(watched_host), at));
    out.arrived.push_back(network.stats().delivered_bytes);
    out.accepted.push_back(world.engine(watched_host).counters().rx_data_bytes);
    std::vector<std::uint64_t> sent;
    for (std::uint32_t h = 0; h < world.hosts(); ++h) {
      sent.push_back(world.engine(h).counters().tx_data_bytes);
    }
    out.sent.push_back(std::move(sent));
  };
  bool replaced = false;
  if (!unlike.empty()) {
    options.control_interval = picos_from_micros(1);
    options.control = [&unlike, &replaced](VirtualWorld& world, Picos) {
      for (const FigureHost& u : unlike) {
        const std::uint32_t host[] = {u.host};
        if (!replaced) world.reconfigure(world.cc_setup(u.cc), 1, 1, host);
      }
      replaced = true;
    };
  }
  VirtualWorld world(s, plan, options);
  CHECK(to_string(world.run()) == std::string(to_string(RunEnd::duration)));
  CHECK(world.problem() == "");
  CHECK(world.network().check_conservation() == "");
  out.stats = world.network().stats();
  for (std::uint32_t h = 0; h < world.hosts(); ++h) out.counters += world.engine(h).counters();
  return out;
}

}  // namespace paceline::simtest
