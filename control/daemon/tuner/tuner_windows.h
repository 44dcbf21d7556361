// Windows for the tuner, from what the sampler sees: all NICs of the service taken as one, since
// they are tuned as one. Counters of messages, lost and repeated packets are added up; load, marks
// and pauses are those of the NIC that received most or suffered most.
//
// What a host can see bounds what the tuner can judge. Of the levels: the queue is that of the last
// hop where it is emulated, otherwise not measured; the delay is the 99th percentile, over queue
// pairs that move something, of the smoothed round trip less the shortest one; senders are the
// peers from which one NIC received within the last glance. Fairness between channels and phases of
// collectives are not measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "control/daemon/telemetry/sampler.h"
#include "control/tuner/online/window.h"

namespace paceline::daemon {

class TunerWindows {
 public:
  // What happened since the last call, but for Window::order. Not fresh: the first after forget(),
  // after another service, after a clock that went back, and where the telemetry of a NIC is not.
  // Call it after each Sampler::sample().
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
