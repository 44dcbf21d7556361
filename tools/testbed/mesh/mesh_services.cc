#include "tools/testbed/mesh/mesh_services.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"

namespace paceline::tools {

void MeshServices::report_absence(const Service& service, int error, int& code) {
  fmt::print(stderr, "paceline: error: {}\n",
             service_absence(service.socket, error, std::strerror(error), service.start));
  code = kExitFailed;
}

// The answer, long or short.
std::optional<MeshJson> MeshServices::ask(Service& service, const MeshJson& request, int& code) {
  const auto answer = service.connection.ask(request);
  if (answer.code != 0) {
    report_absence(service, answer.code, code);
    return std::nullopt;
  }
  if (!answer.errors.empty()) {
    report_errors(answer.errors);
    code = kExitFailed;
    return std::nullopt;
  }
  if (!answer.body.contains("bytes") || answer.descriptors.empty()) return MeshJson(answer.body);
  MeshJson whole =
      MeshJson::parse(read_long_answer(answer.descriptors.front().get()), nullptr, false);
  if (whole.is_object()) return whole;
  report_errors({service.socket + ": its answer is not a JSON object"});
  code = kExitFailed;
  return std::nullopt;
}

bool MeshServices::connect(int& code) {
  std::vector<std::pair<std::string, std::string>> places;  // label, socket
  for (const std::string& name : names_) places.emplace_back(name, service_socket(name));
  for (const std::string& socket : sockets_) places.emplace_back(socket, socket);
  if (places.empty()) places.emplace_back(kDefaultTestbed, socket_to_reach(kDefaultTestbed, ""));
  for (const auto& [label, socket] : places) {
    Service& service = *services_.emplace_back(std::make_unique<Service>());
    MeshHost& host = hosts_.emplace_back();
    host.label = places.size() > 1 ? label + ":" : "";
    service.socket = service::control_socket_beside(socket);
    service.start = options_to_start(label == socket ? kDefaultTestbed : label, socket);
    const int error = service.connection.open(service.socket);
    if (error != 0) {
      report_absence(service, error, code);
      return false;
    }
    const auto hello = ask(service, {{"op", "hello"}}, code);
    if (!hello) return false;
    for (const MeshJson& nic : hello->at("nics")) host.nics.push_back(nic.at("name"));
  }
  return true;
}

std::optional<std::vector<MeshJson>> MeshServices::ask(const std::vector<MeshJson>& requests,
                                                       int& code) {
  std::vector<MeshJson> out;
  for (std::size_t i = 0; i < services_.size(); ++i) {
    const auto answer = ask(*services_[i], requests[i], code);
    if (!answer) return std::nullopt;
    out.push_back(*answer);
  }
  return out;
}

}  // namespace paceline::tools
