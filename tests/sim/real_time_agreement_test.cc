// The claim that makes an emulator in real time worth anything: it gives what virtual time gives.
// A short form of configs/experiments/real-time.toml, with the world's clock held while the machine
// does not let us run. Where it is late for other reasons (a loaded machine, sanitizers), the test
// says that instead.
#include <catch2/catch.hpp>
#include <cmath>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/sim/sim_support.h"
#include "tools/emulate/agreement.h"

namespace paceline::simtest {
namespace {

constexpr Picos kWindow = picos_from_micros(10'000);
constexpr Picos kWarmUp = picos_from_micros(200'000);

struct RealTimeSide {
  std::vector<tools::AgreementWindow> windows;
  tools::ScenarioRun run;
};

RealTimeSide agreement_side(const tools::PreparedScenario& scenario, const config::CcConfig& cc,
                            WallClock* clock) {
  tools::WindowRecorder recorder(kWindow);
  tools::RunControl control;
  control.sample_interval = recorder.distance();
  control.sample = [&](VirtualWorld& world, Picos at) { recorder.look(world, at); };
  control.real_time.clock = clock;
  control.real_time.on_stop = OnStop::hold;
  RealTimeSide side;
  side.run = tools::run_scenario(scenario, cc, 1, control);
  side.windows = recorder.windows();
  return side;
}

TEST_CASE("real time agrees with virtual time on a slow incast") {
  config::ReaderOptions reader;
  reader.algorithms = cc::algorithms();
  reader.overrides = {"scenario.incast.duration=500ms"};
  const auto read = config::read_experiment_file(
      std::string(PACELINE_SOURCE_DIR) + "/configs/experiments/real-time.toml", reader);
  for (const std::string& error : read.errors) UNSCOPED_INFO(error);
  REQUIRE(read.ok());
  const tools::PreparedScenario scenario = prepared(read.value.scenarios.at(0));
  TscWallClock clock;
  for (const config::Arm& arm : read.value.arms) {
    INFO(arm.name);
    const RealTimeSide virtual_time = agreement_side(scenario, arm.cc, nullptr);
    const RealTimeSide real_time = agreement_side(scenario, arm.cc, &clock);
    REQUIRE(virtual_time.run.end == RunEnd::duration);
    REQUIRE(real_time.run.end == RunEnd::duration);
    const RealTimeReport& report = real_time.run.real_time;
    const config::Scenario& file = read.value.scenarios[0];
    const double allowed =
        tools::queue_allowed(report, file.fabric.rate, 4, file.transport.payload_bytes);
    const tools::Agreement a = tools::compare(virtual_time.windows, real_time.windows, report,
                                              {1, 2, 3, 4}, allowed, kWarmUp);
    if (!a.enough() || !report.credible()) {
      WARN(arm.name << ": nothing to be said: " << report.stop_count << " stops of the host, "
                    << a.stopped << " of " << a.windows - a.warm_up
                    << " windows with one; late for " << 100 * report.late_share()
                    << " % of the time");
      continue;
    }
    INFO("queue " << a.virtual_time.queue_bytes << " and " << a.real_time.queue_bytes << ", rate "
                  << a.virtual_time.rate << " and " << a.real_time.rate);
    CHECK(std::abs(a.rate_difference) < 0.1);
    CHECK(std::abs(a.total_difference) < 0.1);
    // The median of thirty windows is less certain than that of the two hundred of the whole run.
    CHECK((std::abs(a.queue_difference) < 0.3 ||
           std::abs(a.real_time.queue_bytes - a.virtual_time.queue_bytes) < allowed));
  }
}

}  // namespace
}  // namespace paceline::simtest
