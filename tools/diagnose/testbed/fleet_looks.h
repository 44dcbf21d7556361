// Looks at the hosts of a fleet, by their daemons.
#pragma once

#include "tools/diagnose/testbed/host_looks.h"
#include "tools/fleet/fleet_file.h"
#include "tools/fleet/fleet_lines.h"

namespace paceline::tools {

class FleetLooks final : public HostLooks {
 public:
  // It must outlive this.
  explicit FleetLooks(const std::vector<FleetHost>& hosts) : lines_(hosts), silent_(hosts.size()) {}

  std::vector<SightedHost> take(double window_seconds) override;
  bool may_return() const override { return true; }

 private:
  FleetLines lines_;
  std::vector<bool> silent_;  // did not answer at the look before: not waited for so long
  bool begun_ = false;
};

}  // namespace paceline::tools
