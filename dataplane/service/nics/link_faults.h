// Faults of a running testbed: what an operator wants to happen to a NIC's port, a link, a switch
// or a plane, as events of links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/link_fault.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/link_event.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline::service {

// One NIC, one of its ports, or a device by its name, and the links that it has.
struct NamedLinks {
  std::string name;
  std::vector<std::uint32_t> links;
};

class LinkFaults {
 public:
  // `spec` is the fabric as built, and outlives this. `one_path`: all packets of a connection take
  // one.
  LinkFaults(config::FabricConfig fabric, bool one_path, const fabric::FabricSpec& spec,
             std::vector<NamedLinks> names)
      : fabric_(std::move(fabric)),
        one_path_(one_path),
        spec_(spec),
        as_built_(spec),
        names_(std::move(names)) {}

  // --- any thread ---
  // Adds the events of a fault, their times counted from when it is given. Returns an error, or an
  // empty text.
  std::string add(const config::LinkFault& fault, std::vector<fabric::LinkEvent>& out) const;
  // The links of a target; empty: there is none of that name.
  std::vector<std::uint32_t> links_of(const std::string& target) const;
  // The first of some source ports, `port` before all, by which packets from one endpoint of the
  // fabric to another pass `link` from its first end; `port` if none does.
  std::uint16_t port_past(std::uint32_t link, std::uint32_t from, std::uint32_t to,
                          std::uint16_t port) const;

 private:
  std::string find(const std::string& target, std::vector<std::uint32_t>& links,
                   bool& by_name) const;
  std::string add_kind(const config::FaultKindInfo& kind, const config::LinkFault& fault,
                       std::vector<fabric::LinkEvent>& out) const;
  // The event that restores the spec's value of what `event` changes.
  fabric::LinkEvent undone(const fabric::LinkEvent& event) const;

  config::FabricConfig fabric_;
  bool one_path_;
  const fabric::FabricSpec& spec_;
  fabric::Topology as_built_;
  std::vector<NamedLinks> names_;
};

}  // namespace paceline::service
