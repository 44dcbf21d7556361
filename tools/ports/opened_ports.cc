#include "tools/ports/opened_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace paceline::tools {

PortOpening open_port(const std::string& testbed_file, const std::string& name) {
  PortOpening out;
  PortsOpening opening = open_ports(testbed_file);
  out.errors = std::move(opening.errors);
  if (!out.errors.empty()) return out;
  out.ports = std::move(opening.ports);
  out.port = out.ports->find(name);
  if (out.port == nullptr) {
    out.errors.push_back(fmt::format("--port {}: {} has {}", name, testbed_file,
                                     fmt::join(out.ports->names(), ", ")));
  }
  return out;
}

}  // namespace paceline::tools
