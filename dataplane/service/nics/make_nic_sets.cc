#include "dataplane/service/nics/make_nic_sets.h"

#include <cassert>
#include <stdexcept>

#include "dataplane/service/nics/emulated_nics.h"

namespace paceline::service {

MadeNicSets make_nic_sets(const config::Testbed& testbed) {
  assert(testbed.scenario);
  MadeNicSets made;
  const NicShape shape = nic_shape(testbed.nic.shape);
  const WorldPlan plan = plan_world(*testbed.scenario, shape);
  if (!plan.error.empty()) {
    made.errors.push_back(testbed.name + ": " + plan.error);
    return made;
  }
  try {
    EmulatedSettings settings;
    settings.names = testbed.nic.names;
    settings.shape = shape;
    settings.fabric = testbed.scenario->fabric;
    settings.one_path = config::has_one_path(*testbed.scenario);
    settings.transmit_ring = testbed.nic.transmit_ring;
    settings.lend_payload = testbed.nic.lend_payload;
    settings.profile = testbed.scenario->cc.profile;
    settings.fallback_profile = testbed.scenario->cc.fallback_profile;
    made.sets.push_back(std::make_unique<EmulatedNics>(plan, settings));
  } catch (const std::invalid_argument& error) {
    made.errors.push_back(testbed.name + ": " + error.what());
  }
  return made;
}

}  // namespace paceline::service
