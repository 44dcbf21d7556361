// Testbeds of ports for a service: the configuration of its engines, and keys that a file must not
// have.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "dataplane/config/scenario/document.h"
#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"

namespace paceline::config {

namespace {

struct OtherKey {
  std::string_view path;
  std::string_view why;
};

// Keys of [transport] that mean nothing on a port.
constexpr std::array kNotOnPorts = {
    OtherKey{"transport.payload_bytes", "is for emulated hosts; a port has port.mtu"},
    OtherKey{"transport.calibration", "is for scenarios"},
    OtherKey{"transport.cnp_in_ack", "is for scenarios"},
    OtherKey{"transport.foreign_hosts", "is about emulated hosts; a port's peers are found out"},
    OtherKey{"transport.retransmit_timeout", "is a program's to say (ibv_modify_qp, timeout)"},
    OtherKey{"transport.retry_count", "is a program's to say (ibv_modify_qp, retry_cnt)"},
};

// An engine has one address of a family.
bool has_two_of_a_family(const HostConfig& host) {
  std::array<unsigned, 2> of_family{};
  for (const AddressConfig& a : host.addresses) ++of_family[a.address.is_v4() ? 0 : 1];
  return of_family[0] > 1 || of_family[1] > 1;
}

}  // namespace

void read_port_engines(const TomlNode& root, Testbed& out, ReadContext& context) {
  std::vector<std::string_view> elsewhere;
  for (const TomlMember& m : root.members) {
    if (m.key != "transport") elsewhere.push_back(m.key);
  }
  Scenario scenario;
  scenario.transport.peers = "discover";
  GivenKeys given;
  context.has_workload = false;
  read_scenario_table(root, elsewhere, scenario, given, context);
  for (const OtherKey& key : kNotOnPorts) {
    if (!given.given(key.path)) continue;
    context.errors->add(given.place({key.path}, root.where),
                        fmt::format("{} {}", key.path, key.why));
  }
  for (const PortConfig& port : out.ports) {
    const auto of_its_bond = [&](const PortConfig& other) { return other.bond == port.bond; };
    if (port.bond.empty()) continue;
    const auto count = std::count_if(out.ports.begin(), out.ports.end(), of_its_bond);
    scenario.fabric.ports = std::max(scenario.fabric.ports, static_cast<std::uint32_t>(count));
  }
  imply_planes(scenario, given);
  check_scenario(scenario, given, root.where, context);
  out.transport = scenario.transport;
  const TomlMember* const cc = root.find("cc");
  if (cc == nullptr || context.algorithms.empty()) return;
  if (!cc->value.is_table()) return context.errors->add(cc->where, "expected a table, [cc]");
  read_cc_table(cc->value, "cc", {}, out.cc, context);
  check_cc_needs(scenario, out.cc, cc->value, "cc", context);
}

std::vector<std::string> service_problems(const Testbed& testbed) {
  std::vector<std::string> problems;
  std::set<std::string> names;  // of NICs
  std::set<std::string> bonds;
  for (const PortConfig& port : testbed.ports) {
    const auto say = [&](const std::string& where, std::string_view text) {
      problems.push_back(fmt::format("{}: port \"{}\": {}", where, port.name, text));
    };
    const bool first_of_bond = !port.bond.empty() && bonds.insert(port.bond).second;
    if (!port.bond.empty() && !first_of_bond) continue;
    if (!names.insert(first_of_bond ? port.bond : port.name).second) {
      say(port.where, "a bond and a port, which is a NIC of its own, have the same name");
    }
    if (port.bond.empty() && !is_nic_name(port.name)) {
      say(port.where,
          "programs see this name: expected letters, digits, \"-\" and \"_\", at most 31");
    }
    if (!port.host) {
      say(port.where,
          "for programs it needs addresses, [port.host]: addresses = [\"10.0.0.1/24\"]");
    } else if (has_two_of_a_family(*port.host)) {
      say(port.host->where, "port.host.addresses: for programs at most one IPv4 and one IPv6");
    }
  }
  return problems;
}

}  // namespace paceline::config
