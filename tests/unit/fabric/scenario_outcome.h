// What a random scenario comes to, however the fabric works it off.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {

inline constexpr Picos kScenarioEnd = picos_from_micros(100'000);

struct ScenarioOutcome {
  std::uint64_t trace = 0;
  NetworkStats stats;
  std::vector<EgressStats> egress;
  Histogram last_hop, core;
  std::string violation;
};

// `exact`: departures are events. `look_every`, `check_every`: as of Lab.
inline ScenarioOutcome outcome_of(const RandomScenario& scenario, bool exact, unsigned slot_shift,
                                  std::uint64_t look_every, std::uint64_t check_every) {
  FabricSpec spec = scenario.spec;
  spec.exact_departures = exact;
  Lab lab(spec, slot_shift);
  lab.reply(scenario.reply);
  lab.look_every(look_every);
  lab.check_every(check_every);
  for (const Send& send : scenario.sends) lab.send(send);
  lab.run(kScenarioEnd);
  lab.net().finish(kScenarioEnd);
  ScenarioOutcome out;
  out.trace = lab.trace_hash();
  out.stats = lab.net().stats();
  for (std::uint32_t link = 0; link < lab.net().links(); ++link) {
    if (const auto egress = lab.net().egress_stats(link)) out.egress.push_back(*egress);
  }
  out.last_hop = lab.net().last_hop_depth();
  out.core = lab.net().core_depth();
  out.violation = lab.violation() + lab.net().check_conservation();
  return out;
}

}  // namespace paceline::fabric
