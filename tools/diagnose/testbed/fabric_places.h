// The places of the hosts' NICs in a fabric's description, and what a look at the hosts says about
// each place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/looks/look_json.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "tools/diagnose/testbed/testbed_evidence.h"

namespace paceline::tools {

// A host of the fabric, as it is described.
struct PlacedHost {
  std::string name;
  std::vector<std::string> nics;      // in the order of the fabric; empty: all of its service
  std::vector<std::uint32_t> places;  // of these; empty: see FabricPlaces
};

// A host in a look.
struct SightedHost {
  looks::SeenHost host;
  std::string error;  // not empty: it did not answer
};

class FabricPlaces {
 public:
  // Both outlive this.
  FabricPlaces(const std::vector<PlacedHost>& hosts, const fabric::FabricSpec& spec)
      : hosts_(hosts), spec_(spec), names_(hosts.size()) {}

  // By the first look, at which all have answered. NICs without a given place stand where their
  // addresses are in the description, if all of them have such; else one after the other.
  std::vector<std::string> open(const std::vector<SightedHost>& first);
  // All places, in the order of the fabric.
  std::vector<TestbedEvidence::Sight> sights(const std::vector<SightedHost>& look) const;

 private:
  struct Listed {
    const looks::SeenNic* nic = nullptr;
    std::size_t host = 0;
    std::uint32_t given = kNowhere;
  };
  static constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;

  std::vector<Listed> list(const std::vector<SightedHost>& first,
                           std::vector<std::string>& errors) const;
  std::uint32_t described(const looks::SeenNic& nic) const;
  std::string full_name(std::size_t host, const std::string& nic) const;

  const std::vector<PlacedHost>& hosts_;
  const fabric::FabricSpec& spec_;
  std::vector<std::map<std::string, std::uint32_t>> names_;  // by host: places of its NICs
};

}  // namespace paceline::tools
