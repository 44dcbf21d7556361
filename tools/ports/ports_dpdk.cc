// Built where DPDK is.
#include <utility>

#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/ports/dpdk_testbed.h"
#include "tools/ports/opened_ports.h"

namespace paceline::tools {

namespace {

class TestbedPorts final : public OpenedPorts {
 public:
  explicit TestbedPorts(std::unique_ptr<DpdkTestbed> testbed) : testbed_(std::move(testbed)) {}

  Port* find(const std::string& name) override {
    TestbedPort* const port = testbed_->find(name);
    return port == nullptr ? nullptr : port->ports.front().get();
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const TestbedPort& port : testbed_->ports()) out.push_back(port.name);
    return out;
  }
  std::vector<std::string> report() const override { return testbed_->report(); }
  std::uint64_t lost(const std::string& name) const override {
    const TestbedPort* const port = testbed_->find(name);
    if (port == nullptr) return 0;
    const DpdkPortCounters& counters = port->ports.front()->counters();
    const DpdkDeviceStatistics device = port->device->statistics();
    return device.rx_missed + device.rx_no_buffer + device.rx_errors + counters.rx_no_packet +
           counters.rx_too_long;
  }

 private:
  std::unique_ptr<DpdkTestbed> testbed_;
};

}  // namespace

PortsOpening open_ports(const std::string& testbed_file) {
  PortsOpening out;
  auto read = config::read_testbed_file(testbed_file);
  out.errors = std::move(read.errors);
  if (!out.errors.empty()) return out;
  DpdkTestbedOpened opened = DpdkTestbed::open(read.value);
  if (opened.testbed == nullptr) {
    out.errors.push_back(std::move(opened.error));
  } else {
    out.ports = std::make_unique<TestbedPorts>(std::move(opened.testbed));
  }
  return out;
}

}  // namespace paceline::tools
