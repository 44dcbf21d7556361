// Telemetry for a live experiment: samples at the edges of blocks, the number of missing samples in
// between, and trips of the guard.
//
// If clusters are receivers' ports, a cluster's figures are those that all NICs of the plan have
// counted towards it, and those that its own NICs have received. A NIC's pauses and its worker's
// cycles then belong to no cluster.
//
// An idle worker sleeps and writes nothing, so the time of its last sample does not change. Such a
// sample gets the time at which it was read, corrected by the offset between the clocks of worker
// and daemon.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/daemon/telemetry/sampler.h"
#include "control/experiment/live/runner.h"

namespace paceline::daemon {

class ExperimentEdges {
 public:
  // By cluster, in the plan's order; the service had all of these NICs at the start. The sampler
  // outlives it. `receivers`: the clusters consist of receiving ports.
  ExperimentEdges(const Sampler& sampler, std::vector<std::vector<std::string>> clusters,
                  bool receivers);

  // After each round of samples; the clock is monotonic.
  void sampled(std::int64_t now_ns);

  // Takes an edge; the count of missing samples restarts.
  std::vector<experiment::live::Runner::EdgeSample> take(std::int64_t now_ns);

  // Empty: telemetry of all NICs has come for long enough (`well_for`) or, where it was well, has
  // not been away for longer than a blink.
  const std::string& trouble() const { return trouble_; }
  // Share of the time since the first look that the worst of the workers was kept from its turns;
  // it sleeps unasked for no time.
  double host_late() const;
  // NICs with a trip latched.
  bool guard_tripped() const;

  // How long telemetry may be away, and how long it must come before it is trusted again.
  void set_patience(std::int64_t blink_ns, std::int64_t well_for_ns) {
    blink_ns_ = blink_ns;
    well_for_ns_ = well_for_ns;
  }

 private:
  static constexpr std::int64_t kAsleepNs = 50'000'000;

  struct Nic {
    std::int64_t ahead_ns = 0;  // worker's clock less the daemon's, at most seen
    bool known = false;
    std::uint32_t missing = 0;  // rounds without a fresh sample since the last edge
    std::uint64_t late_ns = 0;  // of hiccups since the first look
    std::uint64_t last_hiccup_ns = 0;
  };
  experiment::live::NicSample sample_of(const std::string& name, std::int64_t now_ns) const;
  experiment::live::NicSample towards(std::size_t cluster, std::size_t own, const std::string& name,
                                      std::int64_t now_ns) const;

  const Sampler& sampler_;
  std::vector<std::vector<std::string>> clusters_;
  bool receivers_;
  std::map<std::string, Nic> nics_;
  std::uint32_t rounds_ = 0;  // since the last edge
  std::uint64_t start_unix_ns_ = 0;
  std::int64_t first_ns_ = 0;  // of the looks; 0: none yet
  std::int64_t last_ns_ = 0;
  std::int64_t blink_ns_ = 200'000'000;
  std::int64_t well_for_ns_ = 1'000'000'000;
  std::int64_t changed_ns_ = 0;  // since when `fresh_` holds
  bool fresh_ = true;
  bool seen_ = false;
  std::string lacking_;
  std::string trouble_;
};

}  // namespace paceline::daemon
