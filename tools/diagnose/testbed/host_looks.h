// Where looks at hosts come from: the service of this machine (local_looks.h), or the daemons of a
// fleet (fleet_looks.h).
#pragma once

#include <vector>

#include "tools/diagnose/testbed/fabric_places.h"

namespace paceline::tools {

class HostLooks {
 public:
  HostLooks() = default;
  HostLooks(const HostLooks&) = delete;
  HostLooks& operator=(const HostLooks&) = delete;
  virtual ~HostLooks() = default;

  // All hosts now. `window_seconds`: how long until the next look.
  virtual std::vector<SightedHost> take(double window_seconds) = 0;
  // Whether one that does not answer may be back later.
  virtual bool may_return() const = 0;
};

}  // namespace paceline::tools
