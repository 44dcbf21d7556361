// Built where DPDK is not.
#include "dataplane/service/nics/open_ports.h"

namespace paceline::service {

MadeNicSets open_port_nics(const config::Testbed& testbed) {
  MadeNicSets made;
  made.errors.push_back(testbed.ports.front().where + ": port \"" + testbed.ports.front().name +
                        "\": this service was built without DPDK and opens no devices: install "
                        "DPDK's development package and build with -DPACELINE_DPDK=ON");
  return made;
}

}  // namespace paceline::service
