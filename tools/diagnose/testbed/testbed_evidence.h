// Turns looks at a running testbed into what the rules of diagnosis read: its telemetry segment,
// which NICs have a link, and the description of its fabric.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "dataplane/config/testbed/testbed.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/diagnose/pair_evidence.h"
#include "tools/diagnose/testbed/nic_status.h"
#include "tools/top/host_sample.h"

namespace paceline::tools {

class TestbedEvidence {
 public:
  // `testbed` has emulated hosts and outlives this.
  explicit TestbedEvidence(const config::Testbed& testbed);

  std::size_t nics() const { return plan_.fabric.nics(); }

  // Takes a look, `at` after the first one, which is at 0. `sample` and `nics` have nics() entries,
  // in the order of the fabric.
  void look(Picos at, const HostSample& sample, const std::vector<NicStatus>& nics);
  // After the last look.
  diagnosis::Evidence finish();

 private:
  // What a queue pair counted since the service began, or in a window.
  struct Counters {
    std::uint64_t bytes = 0;
    std::uint64_t losses = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t marks = 0;
    std::uint64_t busy_ns = 0;  // it had something to send; in a window, and waited for answers
    std::uint64_t completions = 0;
    std::uint64_t rtt_ns = 0;    // smoothed, as it is now
    std::uint64_t inflight = 0;  // bytes, as it is now
  };
  // Of a queue pair: by window. Those that end are kept.
  struct Pair {
    std::uint32_t src = 0;
    std::uint32_t dst = 0;
    std::uint16_t source_port = 0;
    Counters last;
    std::vector<Counters> windows;
  };
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // NIC; numbers of both ends

  Counters counters_of(const telemetry::QueuePairRecord& record) const;
  static Counters since(const Counters& before, const Counters& now);
  void take(std::uint32_t nic, const telemetry::QueuePairRecord& record);
  void read_nics(Picos at, const std::vector<NicStatus>& nics);
  void write_pair(const Pair& from, const DescribedPaths& paths, diagnosis::Evidence& out) const;
  void write_paces(diagnosis::Evidence& out) const;
  void write_under_way(diagnosis::Evidence& out) const;
  std::pair<double, double> load_of(const Pair& pair, Picos from, Picos until) const;

  const config::Testbed& testbed_;
  WorldPlan plan_;
  std::vector<Picos> ends_;  // of windows
  std::map<Key, Pair> pairs_;
  std::vector<NicStatus> last_;                             // of the NICs
  std::vector<std::vector<diagnosis::NicWindow>> counted_;  // by NIC
  std::vector<diagnosis::PortEvidence> ports_;              // by NIC
  std::vector<std::string> names_;                          // of NICs
};

}  // namespace paceline::tools
