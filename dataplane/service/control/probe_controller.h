// Probing on request of clients of the control socket: gives every NIC instance its queue pair for
// probes and answers, starts it, and reports the results. For the control thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/probing/probe_end.h"
#include "dataplane/service/control/capture_controller.h"
#include "dataplane/service/protocol/control_request.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class ProbeController {
 public:
  explicit ProbeController(Service& service) : service_(service) {}
  // Workers run, or have ended.
  ~ProbeController() { close(); }
  ProbeController(const ProbeController&) = delete;
  ProbeController& operator=(const ProbeController&) = delete;

  // The content of the answers; with any error nothing has changed.
  using Json = nlohmann::ordered_json;
  Json open(const ControlClient& client, const ProbeRequest& request,
            std::vector<std::string>& errors);
  Json begin(const ControlClient& client, const ProbeRequest& request,
             std::vector<std::string>& errors);
  // Clock faults have begun or ended: running probes see them.
  void change_clocks();
  Json figures(const ControlClient& client, std::vector<std::string>& errors);
  // The client is gone.
  void end_all_of(const ControlClient& client);

 private:
  struct End {
    NicPlace place;
    std::string name;
    wire::IpAddress address{};
    std::vector<wire::IpAddress> peers;  // in the order of its prober
  };

  probing::ProbeEnd& end_of(const End& end) {
    return *service_.worker(end.place.worker).probes()[end.place.nic];
  }
  std::vector<probing::ClockChange> changes_of(const std::string& nic, Picos now) const;
  bool is_of(const ControlClient& client, std::vector<std::string>& errors) const;
  void close();
  Json figures_of(const End& end);

  Service& service_;
  ControlClient client_;
  std::vector<End> ends_;  // of all NICs, while anybody probes
  bool begun_ = false;
};

}  // namespace paceline::service
