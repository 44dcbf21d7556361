// Services of a fleet that probe, by their daemons.
#pragma once

#include <string>
#include <vector>

#include "tools/fleet/fleet_file.h"
#include "tools/fleet/fleet_lines.h"
#include "tools/testbed/mesh/mesh_hosts.h"

namespace paceline::tools {

class MeshFleet final : public MeshHosts {
 public:
  // `seconds`: how long it is meant to last.
  MeshFleet(std::string file, double seconds) : file_(std::move(file)), seconds_(seconds) {}
  // Ends the probing.
  ~MeshFleet() override;

  bool connect(int& code) override;
  std::optional<std::vector<MeshJson>> ask(const std::vector<MeshJson>& requests,
                                           int& code) override;

 private:
  FleetLines::Request request_of(const MeshJson& request) const;

  std::string file_;
  double seconds_;
  Fleet fleet_;
  std::optional<FleetLines> lines_;
  std::vector<bool> opened_;
};

}  // namespace paceline::tools
