#include "control/diagnosis/diagnosis.h"

#include <algorithm>

#include "control/diagnosis/rules.h"

namespace paceline::diagnosis {

std::vector<Verdict> diagnose(const Evidence& evidence) {
  Verdicts found;
  Explained explained(evidence);
  find_slow_ranks(evidence, found);
  // Ports that were down explain losses, and losses explain that pairs and NICs are slow.
  find_bad_ports(evidence, explained, found);
  find_lossy_link(evidence, explained, found);
  // Round trips and message times are weaker signs: any fault found so far may have caused them.
  if (found.empty()) find_bad_path(evidence, explained, found);
  if (found.empty()) find_slow_nic(evidence, explained, found);
  find_incast(evidence, explained, found);
  find_oversubscription(evidence, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Verdict& a, const Verdict& b) { return a.cause < b.cause; });
  return found;
}

}  // namespace paceline::diagnosis
