// The rules. Each appends its verdicts to `found`, and leaves out what earlier verdicts explain.
#pragma once

#include <cstdint>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::diagnosis {

// The NICs and queue pairs whose behaviour earlier verdicts explain; later rules ignore them.
struct Explained {
  explicit Explained(const Evidence& evidence)
      : nics(evidence.nics.size()), pairs(evidence.pairs.size()) {}
  std::vector<bool> nics;
  std::vector<bool> pairs;  // by Evidence::pairs
};

using Verdicts = std::vector<Verdict>;

// Whether a window of PairEvidence::windows lies in a part of the time.
inline bool is_in(const Evidence& evidence, std::size_t window, const PartOfTime& part) {
  const Picos begin = window == 0 ? Picos{0} : evidence.window_ends[window - 1];
  const Picos slice = evidence.until / Evidence::kSlices;
  return slice * part.first <= begin && (part.last + 1 == Evidence::kSlices ||
                                         evidence.window_ends[window] <= slice * (part.last + 1));
}

// The excess of a window's round trip over that of an empty fabric; needs a measurement.
inline double excess_us(const PairEvidence& pair, const PairWindow& window) {
  return (static_cast<double>(window.rtt_ns) - pair.base_rtt_ns) / 1e3;
}

// Whether a NIC was seen sending for long enough that find_slow_senders() would have reported it if
// its packets left slowly.
bool sends_as_others(const Evidence& evidence, std::uint32_t nic);

// Ranks that compute longer than their peers before the same collectives, and enter them late.
void find_slow_ranks(const Evidence& evidence, Verdicts& found);
// Ports that are down, or have been down.
void find_bad_ports(const Evidence& evidence, Explained& explained, Verdicts& found);
// NICs whose data travels in another class than that of their peers.
void find_wrong_dscp(const Evidence& evidence, Explained& explained, Verdicts& found);
// NICs that take longer for every packet that they send: slow ones, or behind a PCIe limit.
void find_slow_senders(const Evidence& evidence, Explained& explained, Verdicts& found);
// NICs that tell their switches to pause: a storm, a slow receiver or a PCIe limit.
void find_pausing_nics(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link that all queue pairs with losses share, whatever the load.
void find_lossy_link(const Evidence& evidence, Explained& explained, Verdicts& found);
// A NIC that both sends and receives slowly.
void find_slow_nic(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link between switches that lengthens the round trips of those that pass it.
void find_bad_path(const Evidence& evidence, const Explained& explained, Verdicts& found);
// A link between switches that carries far more than the others beside it, and is full.
void find_hash_collision(const Evidence& evidence, Verdicts& found);
// A switch that marks far less, or far more, than its peers at the same delays.
void find_wrong_ecn(const Evidence& evidence, const Explained& explained, Verdicts& found);
// Caused by the design, not by faults.
void find_incast(const Evidence& evidence, const Explained& explained, Verdicts& found);
void find_oversubscription(const Evidence& evidence, Verdicts& found);

}  // namespace paceline::diagnosis
