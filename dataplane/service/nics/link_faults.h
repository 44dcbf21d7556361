// Faults of a running testbed: what an operator wants to happen to a NIC's port, a link, a switch
// or a plane, as events of links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/link_fault.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/link_event.h"

namespace paceline::service {

// One NIC, one of its ports, or a device by its name, and the links that it has.
struct NamedLinks {
  std::string name;
  std::vector<std::uint32_t> links;
};

class LinkFaults {
 public:
  // `spec` is the fabric as built, and outlives this.
  LinkFaults(config::FabricConfig fabric, const fabric::FabricSpec& spec,
             std::vector<NamedLinks> names)
      : fabric_(std::move(fabric)), spec_(spec), names_(std::move(names)) {}

  // Adds the events of a fault, their times counted from when it is given. Returns an error, or an
  // empty text. Any thread.
  std::string add(const config::LinkFault& fault, std::vector<fabric::LinkEvent>& out) const;

 private:
  std::string find(const std::string& target, std::vector<std::uint32_t>& links) const;
  // What `event` changes becomes what the spec says of its link.
  fabric::LinkEvent undone(const fabric::LinkEvent& event) const;

  config::FabricConfig fabric_;
  const fabric::FabricSpec& spec_;
  std::vector<NamedLinks> names_;
};

}  // namespace paceline::service
