// The world under a clock.
#include <string>
#include <utility>

#include "dataplane/driver/traffic/ideal.h"
#include "dataplane/driver/virtual/real_time_run.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline {

// What is not given follows from the scenario.
void VirtualWorld::prepare_real_time() {
  RealTimeOptions& real_time = options_.real_time;
  if (real_time.tolerance.count == 0) {
    const std::int64_t round_trip_ns = setup_.engine.base_rtt_ns;
    real_time.tolerance = later(picos_from_nanos(round_trip_ns / 50), picos_from_micros(2));
  }
  if (real_time.transmit_ahead.count < 0) {
    const IdealClock clock(scenario_, 2);
    const std::uint64_t payload = 2 * std::uint64_t{scenario_.transport.payload_bytes};
    real_time.transmit_ahead = serialization_time(clock.wire_bytes(payload), scenario_.fabric.rate);
  }
  setup_.fabric.transmit_ahead = real_time.transmit_ahead;
}

RunEnd VirtualWorld::run_in_real_time() {
  WorldPart& part = *parts_.front();
  for (std::uint32_t h = 0; h < hosts_->size(); ++h) part.begin(h);
  RealTimeRun::Options options;
  options.real_time = options_.real_time;
  options.duration = scenario_.duration;
  options.messages = plan_.messages.size();
  options.max_hops = scenario_.max_hops;
  options.stop = options_.stop;
  if (options_.sample) {
    options.sample_interval = options_.sample_interval;
    options.sample = [this](Picos at) {
      now_ = at;
      options_.sample(*this, at);
    };
  }
  if (options_.progress && bytes_total_ != 0) {
    options.progress = [this](std::uint64_t bytes) {
      options_.progress(static_cast<double>(bytes) / static_cast<double>(bytes_total_));
    };
  }
  RealTimeRun run(part, std::move(options));
  const RealTimeRun::End how = run.run();
  real_time_ = run.report();
  now_ = run.now();
  part.network().finish(now_);
  switch (how) {
    case RealTimeRun::End::completed:
      return RunEnd::completed;
    case RealTimeRun::End::duration:
      return RunEnd::duration;
    case RealTimeRun::End::stalled:
      return RunEnd::stalled;
    case RealTimeRun::End::hop_limit:
      problem_ = "more than max_hops = " + std::to_string(scenario_.max_hops) + " packet-hops";
      return RunEnd::hop_limit;
    case RealTimeRun::End::stopped:
      return RunEnd::stopped;
  }
  return RunEnd::violation;
}

}  // namespace paceline
