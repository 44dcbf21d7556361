// The services whose NICs probe each other, however they are reached: by their control sockets
// (mesh_services.h), or by the daemons of a fleet (mesh_fleet.h).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace paceline::tools {

using MeshJson = nlohmann::ordered_json;

struct MeshHost {
  std::string label;              // in front of its NICs' names, where there are several
  std::vector<std::string> nics;  // as far as they are known before it is opened
};

class MeshHosts {
 public:
  MeshHosts() = default;
  MeshHosts(const MeshHosts&) = delete;
  MeshHosts& operator=(const MeshHosts&) = delete;
  virtual ~MeshHosts() = default;

  const std::vector<MeshHost>& hosts() const { return hosts_; }
  // Finds them. If that fails, it was reported, and `code` is the exit code.
  virtual bool connect(int& code) = 0;
  // Sends a request of the control protocol (probe_open, probe_begin, probes) to each host. Returns
  // their answers; nothing: it failed, as above.
  virtual std::optional<std::vector<MeshJson>> ask(const std::vector<MeshJson>& requests,
                                                   int& code) = 0;

 protected:
  std::vector<MeshHost> hosts_;
};

}  // namespace paceline::tools
