#include "control/diagnosis/diagnosis.h"

#include <algorithm>

#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

// Pairs that queue at the receiver of an incast say nothing about their path.
Explained with_incasts(const Evidence& evidence, Explained explained, const Verdicts& loads) {
  for (const Verdict& load : loads) {
    if (load.cause != Cause::incast) continue;
    for (std::size_t p = 0; p < evidence.pairs.size(); ++p) {
      if (evidence.nics[evidence.pairs[p].dst].name == load.culprit) explained.pairs[p] = true;
    }
  }
  return explained;
}

bool core_is_full(const Verdicts& loads) {
  return std::any_of(loads.begin(), loads.end(),
                     [](const Verdict& load) { return load.cause == Cause::oversubscribed; });
}

}  // namespace

std::vector<Verdict> diagnose(const Evidence& evidence) {
  Verdicts found;
  Explained explained(evidence);
  find_slow_ranks(evidence, found);
  // Ports that were down explain losses, and losses explain that pairs and NICs are slow.
  find_bad_ports(evidence, explained, found);
  find_wrong_dscp(evidence, explained, found);
  const std::size_t before = found.size();
  find_slow_senders(evidence, explained, found);
  find_pausing_nics(evidence, explained, found);
  // A full link loses packets. A sender that waits behind a pause for long takes its packets for
  // lost.
  if (found.empty()) find_hash_collision(evidence, found);
  if (found.size() == before) find_lossy_link(evidence, explained, found);
  Verdicts loads;
  find_incast(evidence, explained, loads);
  find_oversubscription(evidence, loads);
  // Round trips and message times are weaker signs: a fault found so far, or a core with more load
  // than it carries, may have caused them.
  const bool unknown = found.empty() && !core_is_full(loads);
  if (unknown) {
    find_bad_path(evidence, with_incasts(evidence, explained, loads), found);
  }
  if (unknown && found.empty()) find_wrong_ecn(evidence, explained, found);
  if (unknown && found.empty()) find_slow_nic(evidence, explained, found);
  found.insert(found.end(), loads.begin(), loads.end());
  std::stable_sort(found.begin(), found.end(),
                   [](const Verdict& a, const Verdict& b) { return a.cause < b.cause; });
  return found;
}

}  // namespace paceline::diagnosis
