// The ports of a testbed file, for commands that read from a device or send to it. In a build
// without DPDK, opening them is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/port/port.h"

namespace paceline::tools {

class OpenedPorts {
 public:
  OpenedPorts() = default;
  OpenedPorts(const OpenedPorts&) = delete;
  OpenedPorts& operator=(const OpenedPorts&) = delete;
  virtual ~OpenedPorts() = default;

  // The first queue of the port; for the calling thread. nullptr: no port is called that.
  virtual Port* find(const std::string& name) = 0;
  virtual std::vector<std::string> names() const = 0;
  // Opened ports, one line each, for a log.
  virtual std::vector<std::string> report() const = 0;
  // Frames that the device has dropped because they were not fetched, or no buffer was free.
  virtual std::uint64_t lost(const std::string& name) const = 0;
};

struct PortsOpening {
  std::unique_ptr<OpenedPorts> ports;
  std::vector<std::string> errors;
};

// Call it once in a process: it starts DPDK's environment.
PortsOpening open_ports(const std::string& testbed_file);

// The same, with the one port of that name; errors list the existing ones.
struct PortOpening {
  std::unique_ptr<OpenedPorts> ports;
  Port* port = nullptr;
  std::vector<std::string> errors;
};
PortOpening open_port(const std::string& testbed_file, const std::string& name);

}  // namespace paceline::tools
