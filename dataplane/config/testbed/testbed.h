// A testbed file as a typed struct: either emulated hosts and the fabric between them, or the
// environment of DPDK, the ports of this machine, and the threads that serve them. Plain values;
// what opens devices is dataplane/driver/ports/dpdk_testbed.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::config {

// [eal]: port/dpdk/dpdk_eal.h says what each does.
struct EalConfig {
  bool no_huge = true;
  bool in_memory = false;
  std::uint64_t memory = 400ULL << 20;  // bytes
  std::string file_prefix;
  std::string lcores;
  std::vector<std::string> vdevs;
  std::vector<std::string> pci_allow;
};

struct AddressConfig {
  wire::IpAddress address;
  std::uint8_t prefix_bits = 0;
};

struct FixedNeighbourConfig {
  wire::IpAddress address;
  wire::MacAddress mac;
};

// [port.host]: neighbour/neighbour_config.h says what each does, and has the same defaults.
struct HostConfig {
  std::vector<AddressConfig> addresses;
  std::optional<wire::IpAddress> gateway_v4;
  std::optional<wire::IpAddress> gateway_v6;
  std::vector<FixedNeighbourConfig> fixed;
  std::uint32_t vlan = 0;  // 0: untagged
  std::uint32_t ip_mtu = 4200;
  bool answer_echo = true;
  std::uint32_t echo_per_second = 1000;
  std::uint32_t announcements = 2;
  std::uint32_t neighbours = 1024;
  Picos retransmit = picos_from_micros(1'000'000);
  Picos reachable = picos_from_micros(30'000'000);
  Picos failed_hold = picos_from_micros(1'000'000);
  Picos stale_lifetime = picos_from_micros(600'000'000);
  std::string where;
};

// [[port]]: port/dpdk/dpdk_device.h.
struct PortConfig {
  std::string name;
  std::string bond;  // the NIC that has this and other ports; empty: a NIC of its own
  std::string device;
  Rate rate{};  // 0: the device's own rate
  Picos base_rtt = picos_from_micros(50);
  std::uint32_t mtu = 4096;
  std::uint32_t queues = 1;
  std::uint32_t packets = 8192;
  std::uint32_t rx_descriptors = 1024;
  std::uint32_t tx_descriptors = 1024;
  bool lend_payload = true;
  bool promiscuous = false;
  std::string pause = "keep";
  std::string clock = "device";
  std::optional<wire::MacAddress> mac;
  std::optional<HostConfig> host;  // none: the sender knows every MAC address
  std::string where;               // position of the device, for errors when it is opened
};

// [nic]: the hosts of an emulated testbed as NIC instances.
struct NicConfig {
  std::vector<std::string> names;  // those without one are called h0, h1, ...
  std::string shape = "bonded";    // or "separate", "multiport": driver/scenario/scenario_setup.h
  Picos transmit_ring = picos_from_micros(20);
  bool lend_payload = true;
};

// [service]: service/limits/service_settings.h says what each does, and has the same defaults.
struct ServiceConfig {
  std::string socket;
  bool open = false;
  std::vector<std::uint32_t> users;
  std::string user;
  std::uint32_t sessions = 256;
  std::uint32_t queue_pairs = 8192;
  std::uint32_t completion_queues = 8192;
  std::uint32_t shared_receive_queues = 1024;
  std::uint32_t regions = 65536;
  std::uint32_t protection_domains = 4096;
  std::uint32_t address_handles = 65536;
  std::uint64_t registered = 0;  // bytes
  std::uint64_t queue_memory = 0;
  std::uint64_t message_rate = 0;
  std::uint32_t message_burst = 1024;
  Picos telemetry_interval = picos_from_micros(5000);
  std::string control_group;
  std::vector<std::string> plugin_folders;
  bool userfaultfd = false;
  bool memlock = false;
};

struct Testbed {
  std::uint32_t schema = 1;
  std::string name = "testbed";
  // Emulated hosts: [fabric], [transport], [cc] and [[event]], without a workload.
  std::optional<Scenario> scenario;
  NicConfig nic;
  ServiceConfig service;
  EalConfig eal;
  std::vector<PortConfig> ports;
  // For engines of a service on ports; emulated hosts have theirs in `scenario`. The peers are
  // unknown, so `peers` is "discover" unless the file says otherwise.
  TransportConfig transport;
  CcConfig cc;
};

}  // namespace paceline::config
