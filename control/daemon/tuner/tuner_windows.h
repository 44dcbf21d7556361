// Windows for the tuner, from the sampler's data: all NICs of the service taken as one, since they
// are tuned as one. Counters of messages, lost and repeated packets are added up; load, marks and
// pauses are those of the NIC with the most of them.
//
// The tuner can judge only what a host can measure. The queue is that of the last hop in an
// emulated fabric, otherwise not measured. The delay is the 99th percentile, over active queue
// pairs, of the smoothed round trip less the shortest one. Senders are the peers from which one NIC
// received in the last interval of kGlanceNs. Fairness between channels and phases of collectives
// are not measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "control/daemon/telemetry/sampler.h"
#include "control/tuner/online/observation/window.h"

namespace paceline::daemon {

class TunerWindows {
 public:
  // The window since the last call, without Window::order. It is not fresh if it is the first after
  // forget(), a change of the service or a clock that went back, or if the telemetry of a NIC is
  // not fresh. Call it after each Sampler::sample().
  tuner::online::Window look(const Sampler& sampler, std::int64_t now_unix_ns);
  void forget() { known_ = false; }

 private:
  // Queue pairs are looked at so often: their records are renewed no faster.
  static constexpr std::int64_t kGlanceNs = 100'000'000;

  struct Places {
    std::optional<std::size_t> tx_bytes, rx_bytes, tx_packets, rx_packets, ce, cnps, retransmitted,
        drops, paused, queue, queue_max, limiter, cycles, cycle_packets;
  };
  struct Totals {
    telemetry::MessagesBySize messages{};
    std::vector<std::uint64_t> values;
  };

  static Places places_of(const Sampler& sampler);
  bool same_service(const Sampler& sampler) const;
  bool add_nic(const Sampler& sampler, std::size_t nic, tuner::online::Window& out);
  void glance(const Sampler& sampler, std::int64_t now_unix_ns);

  bool known_ = false;
  std::uint64_t service_start_ = 0;
  std::int64_t last_ns_ = 0;
  Places places_;
  std::vector<Totals> before_;
  std::int64_t glanced_ns_ = 0;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> pairs_;
  std::uint32_t senders_ = 0;
  double delay_ns_ = -1;
};

}  // namespace paceline::daemon
