// Services of this machine that probe, by their control sockets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/service_link/control_request.h"
#include "tools/testbed/mesh/mesh_hosts.h"

namespace paceline::tools {

class MeshServices final : public MeshHosts {
 public:
  // Names of testbeds, and sockets of services; neither: the usual one.
  MeshServices(std::vector<std::string> names, std::vector<std::string> sockets)
      : names_(std::move(names)), sockets_(std::move(sockets)) {}

  bool connect(int& code) override;
  std::optional<std::vector<MeshJson>> ask(const std::vector<MeshJson>& requests,
                                           int& code) override;

 private:
  struct Service {
    std::string socket;
    std::string start;  // the options to start it with
    ControlConnection connection;
  };
  static std::optional<MeshJson> ask(Service& service, const MeshJson& request, int& code);
  static void report_absence(const Service& service, int error, int& code);

  std::vector<std::string> names_;
  std::vector<std::string> sockets_;
  std::vector<std::unique_ptr<Service>> services_;
};

}  // namespace paceline::tools
