#include "control/diagnosis/verdict.h"

#include <array>

namespace paceline::diagnosis {

namespace {

struct CauseInfo {
  std::string_view name;
  Place place;
  std::string_view advice;
};

constexpr std::array<CauseInfo, kCauses> kInfos{{
    {"slow_rank", Place::host,
     "Look at this rank's GPU and processor: clocks, temperature, other programs. The network is "
     "not the cause."},
    {"slow_nic", Place::host,
     "Test the NIC alone against a neighbour; look at the speed that its port agreed on and at "
     "its firmware."},
    {"pcie_limit", Place::host,
     "Look at the width and speed of the NIC's PCIe link, its errors, and what shares its switch; "
     "then at the host's memory bandwidth."},
    {"slow_receiver", Place::host,
     "Look at the NIC's counters of cache misses and buffers; use larger pages and fewer memory "
     "regions, and see what else uses the host's memory."},
    {"wrong_dscp", Place::host,
     "Compare the NIC's trust mode, default DSCP and priority map with its peers' and with the "
     "switch."},
    {"dead_port", Place::port, "Look at cable, optic and switch port; the other ports carry on."},
    {"flapping_port", Place::port,
     "Take the port out of service; replace cable or optic at either end."},
    {"pfc_storm", Place::port,
     "Shut the switch port down or let its watchdog drop what is for it; then reset the NIC."},
    {"lossy_link", Place::path,
     "Read the error counters and the received light at both ends of the link; clean or replace "
     "the optic."},
    {"bad_path", Place::path,
     "Compare the link's route and length with the plan; move connections to other source ports "
     "meanwhile."},
    {"hash_collision", Place::path,
     "Give the connections other source ports, or spread packets; compare the switch's hash with "
     "that of the tier below."},
    {"wrong_ecn", Place::core,
     "Compare the switch's thresholds, and the class that they are for, with its peers'."},
    {"incast", Place::core,
     "Nothing is broken: many send to one. Spread the load, or schedule the senders."},
    {"oversubscribed", Place::core,
     "Nothing is broken: the core was built with less capacity than the hosts have. Place the "
     "job's ranks nearer to each other, or add uplinks."},
}};

const CauseInfo& info(Cause cause) { return kInfos[static_cast<std::size_t>(cause)]; }

}  // namespace

std::string_view name_of(Cause cause) { return info(cause).name; }
Place place_of(Cause cause) { return info(cause).place; }
std::string_view advice_of(Cause cause) { return info(cause).advice; }

std::string_view name_of(Place place) {
  switch (place) {
    case Place::host:
      return "host";
    case Place::port:
      return "port";
    case Place::path:
      return "path";
    case Place::core:
      return "core";
  }
  return {};
}

}  // namespace paceline::diagnosis
