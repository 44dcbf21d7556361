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

// Ranks that compute longer than their peers before the same collectives, and enter them late.
void find_slow_ranks(const Evidence& evidence, Verdicts& found);
// Ports that are down, or have been down.
void find_bad_ports(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link that all queue pairs with losses use, whatever the load.
void find_lossy_link(const Evidence& evidence, Explained& explained, Verdicts& found);
// A NIC that both sends and receives slowly.
void find_slow_nic(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link between switches that lengthens the round trips of those that pass it.
void find_bad_path(const Evidence& evidence, const Explained& explained, Verdicts& found);
// By design, no faults.
void find_incast(const Evidence& evidence, const Explained& explained, Verdicts& found);
void find_oversubscription(const Evidence& evidence, Verdicts& found);

}  // namespace paceline::diagnosis
