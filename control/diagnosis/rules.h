// The rules by what they look at. Each appends what it finds to `found`; what was found before may
// explain what a rule would find.
#pragma once

#include <cstdint>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::diagnosis {

// What verdicts so far explain: what is seen there says nothing more of NICs and pairs.
struct Explained {
  explicit Explained(const Evidence& evidence)
      : nics(evidence.nics.size()), pairs(evidence.pairs.size()) {}
  std::vector<bool> nics;
  std::vector<bool> pairs;  // by Evidence::pairs
};

using Verdicts = std::vector<Verdict>;

// A rank that computes longer than its peers before the same collectives, and enters them late.
void find_slow_ranks(const Evidence& evidence, Verdicts& found);
// Ports that are down, or go down again and again.
void find_bad_ports(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link on the ways of all pairs that lose packets, whatever the load.
void find_lossy_link(const Evidence& evidence, Explained& explained, Verdicts& found);
// A NIC that is slow both ways.
void find_slow_nic(const Evidence& evidence, Explained& explained, Verdicts& found);
// A link between switches on the ways of all pairs whose round trips are longer.
void find_bad_path(const Evidence& evidence, Explained& explained, Verdicts& found);
// What is as it was built.
void find_incast(const Evidence& evidence, const Explained& explained, Verdicts& found);
void find_oversubscription(const Evidence& evidence, Verdicts& found);

}  // namespace paceline::diagnosis
