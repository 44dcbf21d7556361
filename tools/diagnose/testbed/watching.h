// Looks at what is described on their way to evidence, whether they are taken or were kept.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/diagnose/testbed/fabric_places.h"
#include "tools/diagnose/testbed/look_file.h"
#include "tools/diagnose/testbed/testbed_evidence.h"
#include "tools/diagnose/watch_testbed.h"

namespace paceline::tools {

// A testbed of emulated hosts, or a fleet.
struct Described {
  std::string name;
  config::Scenario scenario;
  NicShape shape = NicShape::bonded;
  std::vector<PlacedHost> hosts;
  LookFileHead head;
};

// By the text in it; errors begin with its source.
config::Read<Described> described_by(const LookFileHead& head);

class Watching {
 public:
  // It outlives this.
  explicit Watching(const Described& of);

  // The first look. Errors: hosts that did not answer, NICs that have no place.
  std::vector<std::string> open(const std::vector<SightedHost>& look);
  // Adds another look. False: no host answered, and the look does not count.
  bool add(Picos at, const std::vector<SightedHost>& look);
  // What a host's error is to the user.
  std::string host_says(std::size_t host, const std::string& error) const;
  // After the last look: name, notes and evidence.
  void finish(WatchedTestbed& out);

 private:
  const Described& of_;
  WorldPlan plan_;
  FabricPlaces places_;
  TestbedEvidence evidence_;
  std::size_t looks_ = 0;
  std::vector<std::size_t> missed_;  // looks, by host
  std::vector<std::string> why_;     // the last time
};

}  // namespace paceline::tools
