// A testbed file as a typed struct: the environment of DPDK and the ports of this machine. Plain
// values; what opens devices is dataplane/driver/dpdk_testbed.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::config {

// [eal]: port/dpdk_eal.h says what each does.
struct EalConfig {
  bool no_huge = true;
  bool in_memory = false;
  std::uint64_t memory = 400ULL << 20;  // bytes
  std::string file_prefix;
  std::string lcores;
  std::vector<std::string> vdevs;
  std::vector<std::string> pci_allow;
};

// [[port]]: port/dpdk_device.h.
struct PortConfig {
  std::string name;
  std::string device;
  Rate rate{};  // 0: what the device says
  std::uint32_t mtu = 4096;
  std::uint32_t queues = 1;
  std::uint32_t packets = 8192;
  std::uint32_t rx_descriptors = 1024;
  std::uint32_t tx_descriptors = 1024;
  bool promiscuous = false;
  std::optional<std::array<std::uint8_t, 6>> mac;
  std::string where;  // of the device, for whoever fails to open it
};

struct Testbed {
  std::uint32_t schema = 1;
  EalConfig eal;
  std::vector<PortConfig> ports;
};

}  // namespace paceline::config
