// Which designs tell the truth where arms share queues. A model of receiver ports small enough to
// be run for every design: messages share a port's rate in proportion to their weight, and wait
// behind what those that fill the queue keep in it.
//
//   champion   reactive: a standing queue of kQueued each while it is active, full weight
//   candidate  proactive: keeps nothing queued, but yields to those that do (weight kYielding)
//
// Replacing all champions empties the queue: the truth is a gain. Side by side candidates wait in
// the champions' queue, and yield: they look worse than the champions next to them.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "control/experiment/live/analysis/interference.h"
#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;

namespace {

constexpr double kLoad = 0.7;  // of a port, of rate 1; messages of mean size 1
constexpr double kQueued = 0.6;
constexpr double kYielding = 0.35;
constexpr double kBlock = 3000;  // mean service times
constexpr double kWashout = 300;

struct Message {
  double arrived = 0;
  double size = 0;
  double left = 0;
  double waits = 0;  // behind the queue it found
  int arm = 0;
};

// Sums of log slowdown, by arm.
struct Logs {
  double sum[2] = {0, 0};
  double n[2] = {0, 0};
  double mean(int arm) const { return sum[arm] / n[arm]; }
  double all() const { return (sum[0] + sum[1]) / (n[0] + n[1]); }
};

// One port over all blocks. arm(block, random) is asked of each message that arrives.
std::vector<Logs> port(std::uint32_t blocks, Random random,
                       const std::function<int(std::uint32_t, Random&)>& arm) {
  std::vector<Logs> out(blocks);
  std::vector<Message> active;
  double now = 0;
  double next = exponential(random, 1 / kLoad);
  while (now < blocks * kBlock) {
    double weights = 0;
    int champions = 0;
    for (const Message& m : active) champions += m.arm == 0;
    const double yielded = champions > 0 ? kYielding : 1;
    for (const Message& m : active) weights += m.arm == 0 ? 1 : yielded;
    std::size_t first = active.size();
    double ends = next;
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double rate = (active[i].arm == 0 ? 1 : yielded) / weights;
      if (now + active[i].left / rate < ends) {
        ends = now + active[i].left / rate;
        first = i;
      }
    }
    for (Message& m : active) m.left -= (ends - now) * (m.arm == 0 ? 1 : yielded) / weights;
    now = ends;
    const auto block = [&](double t) { return static_cast<std::uint32_t>(t / kBlock); };
    if (first < active.size()) {
      const Message& m = active[first];
      const std::uint32_t b = block(m.arrived);
      // As in a real block: begun after the wash-out, and not crossed over into the next.
      if (b < blocks && m.arrived - b * kBlock > kWashout && block(now) == b) {
        out[b].sum[m.arm] += std::log((now - m.arrived + m.waits) / m.size);
        out[b].n[m.arm] += 1;
      }
      active[first] = active.back();
      active.pop_back();
    } else {
      Message m;
      m.arrived = now;
      m.size = m.left = 0.2 + exponential(random, 0.8);
      m.waits = kQueued * champions;
      if (block(now) < blocks) m.arm = arm(block(now), random);
      active.push_back(m);
      next = now + exponential(random, 1 / kLoad);
    }
  }
  return out;
}

constexpr std::uint32_t kPorts = 4;
constexpr AnalysisOptions kFewRedraws{.full = true, .redraws = 200, .resamples = 200};

// All messages of all ports in one arm, with the same arrivals: the truth.
double truth() {
  double level[2] = {0, 0};
  for (const int arm : {0, 1}) {
    for (std::uint32_t p = 0; p < kPorts; ++p) {
      for (const Logs& logs : port(40, Random(1, p), [&](auto, Random&) { return arm; })) {
        level[arm] += logs.all() / (40.0 * kPorts);
      }
    }
  }
  return level[1] - level[0];
}

// What a test that randomises messages reports.
double per_message(double share) {
  Logs all;
  for (std::uint32_t p = 0; p < kPorts; ++p) {
    const auto blocks =
        port(40, Random(2, p), [&](auto, Random& r) { return r.uniform() < share ? 1 : 0; });
    for (const Logs& logs : blocks) {
      for (const int arm : {0, 1}) {
        all.sum[arm] += logs.sum[arm];
        all.n[arm] += logs.n[arm];
      }
    }
  }
  return all.mean(1) - all.mean(0);
}

// A registered experiment with whole clusters in an arm.
LiveAnalysis by_blocks(const Plan& plan) {
  const Schedule schedule = make_schedule(plan);
  const std::uint32_t clusters = schedule.mechanism.clusters;
  std::vector<std::vector<double>> values(schedule.blocks(), std::vector<double>(clusters, 0));
  for (std::uint32_t p = 0; p < kPorts; ++p) {
    const std::uint32_t c = p % clusters;
    const auto blocks = port(schedule.blocks(), Random(3, p), [&](std::uint32_t b, Random&) {
      return static_cast<int>(schedule.arm(b, c));
    });
    for (std::uint32_t b = 0; b < schedule.blocks(); ++b) {
      values[b][c] += blocks[b].all() * clusters / kPorts;
    }
  }
  Random random(4);
  Circumstances now;
  now.finished = now.calibrated = true;
  return analyse_live(plan, schedule,
                      draw_blocks(schedule, random,
                                  [&](const BlockPlace& place, Random&) {
                                    return values[place.block][place.cluster];
                                  }),
                      now, kFewRedraws);
}

}  // namespace

TEST_CASE("truth table of designs: per message the wrong sign, by port and by time the truth",
          "[slow]") {
  const double total = truth();
  INFO("truth " << total);
  REQUIRE(total < -0.2);  // replacing all champions is a gain

  // The reported sign is wrong at every share, and the size depends on the share.
  for (const double share : {0.1, 0.5, 0.9}) {
    const double reported = per_message(share);
    INFO("per message, " << share << " treated: " << reported);
    CHECK(reported > 0.05);
  }

  const LiveAnalysis ports = by_blocks(cluster_plan(60, kPorts, 5));
  INFO("receiver ports " << ports.primary().mean);
  CHECK(ports.primary().mean == Approx(total).epsilon(0.10));
  CHECK(ports.primary().decision.high < 0);

  const LiveAnalysis time = by_blocks(switchback_plan(60, 5));
  INFO("switchback " << time.primary().mean);
  CHECK(time.primary().mean == Approx(total).epsilon(0.05));
  CHECK(time.primary().decision.low < total);
  CHECK(time.primary().decision.high > total);
  CHECK(time.verdict == Verdict::ship);

  // Ports share nothing here, and the table says so.
  CHECK(ports.interference.known);
  CHECK(ports.interference.spillover == Approx(0).margin(0.05));
}
