// What an Ethernet device of DPDK offers, and what becomes of what it lacks. Asking changes
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/wire/addresses.h"

namespace paceline {

struct DpdkCapabilities {
  std::string device;  // name
  std::string driver;  // "net_memif", "mlx5_pci"
  int socket = -1;     // NUMA node, -1: none in particular
  std::uint16_t port_id = 0;
  wire::MacAddress mac{};
  std::uint64_t link_mbps = 0;  // 0: the device does not know
  std::uint16_t ip_mtu = 0;     // as configured
  std::uint16_t largest_ip_mtu = 0;
  std::uint32_t largest_frame = 0;
  std::uint16_t rx_queues = 0;  // at most
  std::uint16_t tx_queues = 0;
  bool rx_ip_checksum = false;
  bool tx_ip_checksum = false;
  bool rss = false;          // spreads UDP flows over queues
  bool flow_rules = false;   // takes a rule for UDP port 4791
  std::string flow_refusal;  // why not, in the driver's words
  bool rx_timestamps = false;
  bool rx_scatter = false;
  bool tx_multi_segment = false;
  bool tx_fast_free = false;
  bool link_interrupt = false;
  bool pause = false;              // IEEE 802.3x
  bool virtual_addresses = false;  // the device reads any memory of the process

  // What zero-copy transmit from registered memory asks of a device: several segments in a frame
  // (headers, payload where it lies, ICRC) and addresses that need no registration.
  bool could_send_in_place() const { return tx_multi_segment && virtual_addresses; }
  // One line: what it is.
  std::string summary() const;
  // One line for each thing that is missing and what stands in for it.
  std::vector<std::string> missing() const;
};

// Of a configured and started device.
DpdkCapabilities probe_capabilities(std::uint16_t port_id);

}  // namespace paceline
