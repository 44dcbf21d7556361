// Built where DPDK is not.
#include "tools/ports/opened_ports.h"

namespace paceline::tools {

PortsOpening open_ports(const std::string& testbed_file) {
  PortsOpening out;
  out.errors.push_back(testbed_file +
                       ": this paceline was built without DPDK and opens no devices: install "
                       "DPDK's development package and build with -DPACELINE_DPDK=ON");
  return out;
}

}  // namespace paceline::tools
