// Offloads of an Ethernet device of DPDK, and the replacement of each that it lacks. Queries change
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/port/pause.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline {

// How a payload in registered memory leaves by a device.
enum class SendPath : std::uint8_t {
  copied,     // into the packet first
  in_call,    // the driver reads it where it lies, before the call that sends returns
  handed_on,  // a receiver in this process reads it where it lies, later
};

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
  bool arrival_times = false;  // they tell when packets came
  std::string stamp_refusal;   // why not
  bool rx_scatter = false;
  bool tx_multi_segment = false;
  bool tx_fast_free = false;
  bool link_interrupt = false;
  PauseState pause;                // IEEE 802.3x
  bool virtual_addresses = false;  // the device reads any memory of the process

  SendPath send_path = SendPath::copied;
  std::string send_refusal;  // why it is copied
  // A description in one line.
  std::string summary() const;
  // One line for each missing offload and its replacement.
  std::vector<std::string> missing() const;
};

// For a configured and started device.
DpdkCapabilities probe_capabilities(std::uint16_t port_id);

// The best path for payloads of a device of that driver with those arguments; `refusal` says why
// they must be copied, if so. Sending without a copy needs several segments in a frame (headers,
// payload in place, ICRC), and a driver of which it is known when it has read them.
SendPath send_path_of(std::string_view driver, std::string_view device, bool multi_segment,
                      std::string& refusal);

}  // namespace paceline
