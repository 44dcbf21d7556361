// Opens what a testbed file (config/testbed/testbed.h) describes: DPDK's environment, a packet
// memory for each queue, on the node of its device, devices, ports, and in front of a port that is
// a host the port that knows neighbours. Engines and threads are the caller's. Once in a process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/port/dpdk/dpdk_port.h"

namespace paceline {

struct TestbedPort {
  std::string name;
  // In the order of making; ports[i] is queue i of the device. Ports of a bond share theirs.
  std::vector<std::shared_ptr<DpdkMemory>> memories;
  std::unique_ptr<DpdkDevice> device;
  std::vector<std::unique_ptr<DpdkPort>> ports;
  // In front of ports[0], where the file has a [port.host], for it or for the first of its bond.
  std::unique_ptr<neighbour::ResolvingPort> resolver;

  // The parts on which an engine is made.
  Port& front(std::uint32_t queue) {
    if (resolver != nullptr) return *resolver;
    return *ports[queue];
  }

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
  // For a log, one line each: what was opened, which offloads are missing, and their replacement.
  std::vector<std::string> report() const;

 private:
  DpdkTestbed() = default;

  std::unique_ptr<Eal> eal_;
  std::vector<TestbedPort> ports_;
};

}  // namespace paceline
