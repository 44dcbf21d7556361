#include "dataplane/driver/ports/dpdk_testbed.h"

#include <optional>
#include <utility>

#include "dataplane/driver/ports/testbed_setup.h"

namespace paceline {

namespace {

EalSettings settings_of(const config::EalConfig& eal) {
  EalSettings s;
  s.no_huge = eal.no_huge;
  s.in_memory = eal.in_memory;
  s.memory_mb = static_cast<std::uint32_t>(eal.memory >> 20);
  s.file_prefix = eal.file_prefix;
  s.lcores = eal.lcores;
  s.vdevs = eal.vdevs;
  s.pci_allow = eal.pci_allow;
  return s;
}

DpdkDeviceSettings settings_of(const config::PortConfig& port) {
  DpdkDeviceSettings s;
  s.device = port.device;
  s.mtu_bytes = static_cast<std::uint16_t>(port.mtu);
  s.rx_descriptors = static_cast<std::uint16_t>(port.rx_descriptors);
  s.tx_descriptors = static_cast<std::uint16_t>(port.tx_descriptors);
  s.lend_payload = port.lend_payload && port.bond.empty();
  s.promiscuous = port.promiscuous;
  s.all_multicast = port.host.has_value();
  s.mac = port.mac;
  s.device_clock = port.clock == "device";
  s.pause = pause_mode_of(port.pause);  // nothing: "keep"
  return s;
}

// What ports of a bond need together.
struct BondNeeds {
  std::uint32_t packets = 0;
  std::uint32_t descriptors = 0;
};

BondNeeds needs_of(const config::Testbed& testbed, const config::PortConfig& of) {
  if (of.bond.empty()) return {of.packets, 0};
  BondNeeds needs;
  for (const config::PortConfig& port : testbed.ports) {
    if (port.bond != of.bond) continue;
    needs.packets += port.packets;
    needs.descriptors += port.rx_descriptors + port.tx_descriptors;
  }
  return needs;
}

// Fills `out`; the error, if any. `first`: of its bond, if another one is.
std::string open_port(Eal& eal, const config::PortConfig& config, const BondNeeds& needs,
                      std::size_t index, TestbedPort* first, TestbedPort& out) {
  out.name = config.name;
  if (first != nullptr) out.memories = first->memories;
  std::vector<DpdkMemory*> memories;
  for (const auto& memory : out.memories) memories.push_back(memory.get());
  const int node = DpdkDevice::node_of(eal, config.device);
  for (std::uint32_t q = 0; q < config.queues && first == nullptr; ++q) {
    DpdkMemorySettings settings;
    settings.name = "port";
    settings.name += std::to_string(index) + "-" + std::to_string(q);
    settings.packets = needs.packets;
    settings.payload_room = static_cast<std::uint16_t>(config.mtu);
    settings.socket = node;
    DpdkMemoryMade made = DpdkMemory::make(settings);
    if (made.memory == nullptr) return made.error;
    memories.push_back(made.memory.get());
    out.memories.push_back(std::move(made.memory));
  }
  DpdkDeviceOpened opened = DpdkDevice::open(eal, settings_of(config), memories);
  if (opened.device == nullptr) return opened.error;
  out.device = std::move(opened.device);
  for (std::uint16_t q = 0; q < config.queues; ++q) {
    DpdkPortSettings settings;
    settings.queue = q;
    settings.link_rate = config.rate;
    settings.pool_id = static_cast<std::uint16_t>(out.ports.size());
    if (needs.descriptors != 0) settings.engine_packets = needs.packets - needs.descriptors;
    if (first != nullptr) settings.pool = &first->ports[q]->packets();
    DpdkPortMade made = DpdkPort::make(*out.device, settings);
    if (made.port == nullptr) return made.error;
    out.ports.push_back(std::move(made.port));
  }
  return "";
}

// [port.host]; `seed` is for the times that RFC 4861 wants drawn.
std::string put_resolver(const config::HostConfig& config, std::uint64_t seed, TestbedPort& port) {
  const neighbour::HostConfig host = host_config_of(config, port.device->mac());
  std::string text;
  for (const std::string& line : neighbour::problems(host)) {
    text += (text.empty() ? "" : "; ") + line;
  }
  if (!text.empty()) return text;
  port.resolver =
      std::make_unique<neighbour::ResolvingPort>(*port.ports[0], host, Random(seed, 0x4E44));
  return "";
}

}  // namespace

TestbedPort::~TestbedPort() {
  resolver.reset();
  ports.clear();
  device.reset();
  memories.clear();
}

DpdkTestbedOpened DpdkTestbed::open(const config::Testbed& config) {
  std::unique_ptr<DpdkTestbed> testbed(new DpdkTestbed);
  EalStart start = Eal::start(settings_of(config.eal));
  if (start.eal == nullptr) return {nullptr, start.error};
  testbed->eal_ = std::move(start.eal);
  testbed->ports_.reserve(config.ports.size());
  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    const config::PortConfig& port = config.ports[i];
    std::size_t first = port.bond.empty() ? i : 0;  // of its bond
    while (first < i && config.ports[first].bond != port.bond) ++first;
    TestbedPort& out = testbed->ports_.emplace_back();
    const std::string error = open_port(*testbed->eal_, port, needs_of(config, port), i,
                                        first == i ? nullptr : &testbed->ports_[first], out);
    if (!error.empty()) return {nullptr, port.where + ": port \"" + port.name + "\": " + error};
    const std::optional<config::HostConfig>& host = config.ports[first].host;
    if (!host) continue;
    const std::string wrong = put_resolver(*host, i + 1, out);
    if (!wrong.empty()) {
      return {nullptr, host->where + ": port \"" + port.name + "\": host: " + wrong};
    }
  }
  return {std::move(testbed), ""};
}

TestbedPort* DpdkTestbed::find(const std::string& name) {
  for (TestbedPort& port : ports_) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

std::vector<std::string> DpdkTestbed::report() const {
  std::vector<std::string> lines;
  for (const TestbedPort& port : ports_) {
    const auto add = [&](const std::string& line) {
      lines.push_back("port " + port.name + ": " + line);
    };
    add(port.device->capabilities().summary());
    for (const std::string& line : port.device->notes()) add(line);
    for (const std::string& line : port.device->capabilities().missing()) add(line);
  }
  return lines;
}

}  // namespace paceline
