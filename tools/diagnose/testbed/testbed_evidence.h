// Turns looks at the hosts of a fabric into what the rules of diagnosis read: counters of queue
// pairs, which NICs have a link, and the description of the fabric.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/telemetry/segment.h"
#include "dataplane/wire/headers/addresses.h"
#include "tools/diagnose/pair_evidence.h"
#include "tools/diagnose/testbed/nic_status.h"

namespace paceline::tools {

class TestbedEvidence {
 public:
  // Both outlive this. `spec`: of the scenario's fabric.
  TestbedEvidence(const config::Scenario& scenario, const fabric::FabricSpec& spec);

  // A NIC as a look found it.
  struct Sight {
    bool seen = false;           // else its host did not answer
    std::uint64_t instance = 0;  // of its service: another one counts from 0 again
    std::string name;
    std::vector<wire::IpAddress> addresses;
    bool hash_known = false;  // it is emulated, and has the address that its place has there
    NicStatus status;
    std::vector<telemetry::QueuePairRecord> queue_pairs;
  };
  // Takes a look, `at` after the first one, which is at 0. `nics`: all, in the order of the fabric.
  void look(Picos at, const std::vector<Sight>& nics);
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
  // A queue pair, by window. Queue pairs that end are kept.
  struct Pair {
    std::uint32_t src = 0;
    std::uint32_t dst = 0;
    wire::IpAddress peer{};  // until finish() says whose it is
    std::uint16_t source_port = 0;
    Counters last;
    std::vector<Counters> windows;
  };
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // NIC; numbers of both ends
  // What is known of a NIC.
  struct Known {
    bool seen = false;
    std::uint64_t instance = 0;
    std::size_t missed = 0;  // looks, since it was seen
    bool hash_known = false;
    std::string name;
  };

  Counters counters_of(const telemetry::QueuePairRecord& record) const;
  static Counters since(const Counters& before, const Counters& now);
  std::size_t nics() const { return spec_.nics(); }
  void meet(std::uint32_t nic, const Sight& sight);
  void take(std::uint32_t nic, const telemetry::QueuePairRecord& record);
  static void spread(const Counters& grown, std::size_t over, std::vector<Counters>& windows);
  void read_nic(Picos at, std::uint32_t nic, const NicStatus& now);
  void find_peers();
  void write_pair(const Pair& from, const DescribedPaths& paths, diagnosis::Evidence& out) const;
  void write_paces(diagnosis::Evidence& out) const;
  void write_under_way(diagnosis::Evidence& out) const;
  std::pair<double, double> load_of(const Pair& pair, Picos from, Picos until) const;

  const config::Scenario& scenario_;
  const fabric::FabricSpec& spec_;
  bool begun_ = false;
  std::vector<Picos> ends_;  // of windows
  std::map<Key, Pair> pairs_;
  std::vector<Known> known_;                                // of the NICs
  std::vector<NicStatus> last_;                             // of the NICs
  std::vector<std::vector<diagnosis::NicWindow>> counted_;  // by NIC
  std::vector<diagnosis::PortEvidence> ports_;              // by NIC
  std::unordered_map<wire::IpAddress, std::uint32_t, wire::IpAddressHash> owners_;
};

}  // namespace paceline::tools
