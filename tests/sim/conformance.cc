#include "tests/sim/conformance.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "cc/registry.h"
#include "dataplane/base/numbers/jain.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

// Star of 100 Gb/s and 1 us: an unloaded round trip takes 4.7 us and 59 kB, the window that most
// flows start with. Marks begin at 400 kB (kmin) and hit every packet from 1.6 MB on. Queues are
// for eight flows of 1 MB; a sender that hears nothing makes 7.1 MB of that.
constexpr Promise kPromises[] = {
    {"fixed", "", "", 0.9e6, 0, "deaf: seven eighths of everything wait", 0.99, 0.5},
    {"dcqcn", "profile = \"paper\"", "", 0.75e6, 0,
     "line rate until CNPs have come, no window; but it hears something", 0.95, 0.4},
    {"cadence", "fallback = \"dcqcn\", fallback_profile = \"paper\"", "", 0, 120e3,
     "all senders together start with a path's bytes, and are granted the port once", 0.98, 0.3},
    {"swift", "", "", 70e3, 700e3, "eight flows in one queue: 25 us of target, 30 of flow scaling",
     0.95, 0.1},
    {"timely", "profile = \"fabric\"", "start_rate = 0.1", 0, 800e3,
     "begins at a share (SIGCOMM'15, 4.3); above T_high, 60 us, every sample cuts", 0.9, 0.02},
    {"dctcp", "", "", 45e3, 800e3, "slow start doubles once more after the first mark at kmin", 0.8,
     0.1},
    {"theta-powertcp", "", "", 70e3, 50e3, "at rest the sum of the betas, a tenth of a path each",
     0.95, 0.03},
    {"nscc", "", "", 92e3, 100e3, "begins with one and a half paths; the target is another one",
     0.9, 0.1},
    {"hpcc", "", "", 70e3, 20e3, "one path each at first; then links at 95 % and no queue", 0.8,
     0.0003},  // a queue of others is one: what is left is W_AI
    {"powertcp", "", "", 70e3, 50e3, "at rest the sum of the betas, a tenth of a path each", 0.95,
     0.03},
    {"eqds", "fallback = \"dcqcn\", fallback_profile = \"paper\"", "", 92e3, 60e3,
     "speculation: one and a half paths; what is pulled comes at 99 %", 0.95, 0.1},
    {"sird", "fallback = \"dcqcn\", fallback_profile = \"paper\"", "", 0, 35e3,
     "B less what is under way: messages above UnschT ask first", 0.98, 0.02},
    {"homa", "fallback = \"dcqcn\", fallback_profile = \"paper\"", "", 59e3, 530e3,
     "all begin with a path's bytes; ten paths may be on their way, one of them is", 0.1, 0.05},
    {"switch-notified", "", "", 0.75e6, 0, "line rate until notices have come, no window", 0.95,
     0.1},
};

// What a scenario needs for its algorithm: switches that notify, or switches that record and XACKs
// that bring it back.
std::string with_needs(std::string toml) {
  const auto any_that = [&toml](auto needs) {
    return std::any_of(
        cc::algorithms().begin(), cc::algorithms().end(), [&](const cc::AlgorithmInfo& algorithm) {
          const std::string line = "algorithm = \"" + std::string(algorithm.name) + "\"";
          return needs(algorithm) && toml.find(line) != std::string::npos;
        });
  };
  if (any_that(cc::needs_notices)) {
    toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nnotice = { enabled = true }\n");
  }
  if (!any_that(cc::needs_telemetry)) return toml;
  toml.replace(toml.find("[fabric]\n"), 9, "[fabric]\nint = true\n");
  const std::string transport = "transport = { ";
  const std::string selective = "reliability = \"selective\"";
  if (toml.find(selective) != std::string::npos) return toml;
  const std::size_t at = toml.find(transport);
  if (at == std::string::npos) return transport + selective + " }\n" + toml;
  return toml.insert(at + transport.size(), selective + ", ");
}

}  // namespace

const Promise& promise_of(const cc::AlgorithmInfo& algorithm) {
  for (const Promise& promise : kPromises) {
    if (promise.algorithm == algorithm.name) return promise;
  }
  FAIL("say in conformance.cc what " << algorithm.name << " promises");
  return kPromises[0];
}

std::string cc_line(const cc::AlgorithmInfo& algorithm, const std::string& params) {
  std::string line = "cc = { algorithm = \"" + std::string(algorithm.name) + "\"";
  const Promise& promise = promise_of(algorithm);
  if (!promise.cc.empty()) line += ", " + std::string(promise.cc);
  std::string all(promise.params);
  if (!params.empty()) all += (all.empty() ? "" : ", ") + params;
  if (!all.empty()) line += ", params = { " + all + " }";
  return line + " }\n";
}

Outcome settle(const std::string& toml, WorldOptions options) {
  Outcome out;
  options.check_invariants = true;
  if (options.sample_interval == kNever) options.sample_interval = picos_from_micros(5);
  options.sample = [&out](const VirtualWorld& world, Picos at) {
    // A look at a queue needs a mutable network; it changes no result (network.h).
    auto& network = const_cast<VirtualWorld&>(world).network();
    out.queue_max =
        std::max(out.queue_max, network.queue_bytes(network.topology().host_downlink(0), at));
    std::vector<std::uint64_t> sent;
    for (std::uint32_t h = 0; h < world.hosts(); ++h) {
      sent.push_back(world.engine(h).counters().tx_data_bytes);
    }
    out.sent.push_back(std::move(sent));
  };
  VirtualWorld world = world_of(with_needs(toml), options);
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(broken_law(world) == "");
  REQUIRE(world.messages_failed() == 0);
  out.hash = world.trace_hash();
  out.ended = world.now();
  out.stats = world.network().stats();
  return out;
}

double fairness(const Outcome& outcome, double from, double to) {
  const auto n = static_cast<double>(outcome.sent.size());
  REQUIRE(n > 20);
  const auto& a = outcome.sent[static_cast<std::size_t>(n * from)];
  const auto& b = outcome.sent[static_cast<std::size_t>(n * to)];
  std::vector<double> sent;
  for (std::size_t h = 1; h < a.size(); ++h) sent.push_back(static_cast<double>(b[h] - a[h]));
  return jain_index(sent);
}

}  // namespace paceline::simtest
