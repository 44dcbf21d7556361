// Opens what a testbed file (config/testbed.h) describes: DPDK's environment, a packet memory for
// each queue, devices, ports. Once in a process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/config/testbed.h"
#include "dataplane/port/dpdk_port.h"

namespace paceline {

struct TestbedPort {
  std::string name;
  // In the order of making; ports[i] is queue i of the device.
  std::vector<std::unique_ptr<DpdkMemory>> memories;
  std::unique_ptr<DpdkDevice> device;
  std::vector<std::unique_ptr<DpdkPort>> ports;

  TestbedPort() = default;
  TestbedPort(TestbedPort&&) = default;
  TestbedPort& operator=(TestbedPort&&) = delete;
  ~TestbedPort();
};

class DpdkTestbed;

struct DpdkTestbedOpened {
  std::unique_ptr<DpdkTestbed> testbed;  // null: see error
  std::string error;                     // begins with the place in the file, where there is one
};

class DpdkTestbed {
 public:
  static DpdkTestbedOpened open(const config::Testbed& config);

  Eal& eal() { return *eal_; }
  std::vector<TestbedPort>& ports() { return ports_; }
  // nullptr when no port is called that.
  TestbedPort* find(const std::string& name);
  // What was opened, and what is missing and how it is made up for: a line each, for a log.
  std::vector<std::string> report() const;

 private:
  DpdkTestbed() = default;

  std::unique_ptr<Eal> eal_;
  std::vector<TestbedPort> ports_;
};

}  // namespace paceline
