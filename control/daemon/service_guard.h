// The service's guard, as the daemon asks for it: its trips, latched trips, plug-ins in quarantine.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/control_client.h"

namespace paceline::daemon {

class ServiceGuard {
 public:
  // It outlives this.
  explicit ServiceGuard(ControlClient& service) : service_(service) {}

  // A NIC's trip of that number; null: the service does not have it.
  boost::asio::awaitable<Json> trip(std::string nic, std::uint32_t number);
  // Why a plug-in on a NIC was put into quarantine last; nothing: the service does not say.
  boost::asio::awaitable<std::optional<std::string>> quarantine(std::string nic);

  boost::asio::awaitable<Reply> show();
  // Releases the latch, so that trials are allowed again. `body`: nics, or all.
  boost::asio::awaitable<Reply> clear(Json body);

 private:
  boost::asio::awaitable<Json> trips(std::string nic);

  ControlClient& service_;
};

// /v1/guard. `tell`: that it was cleared.
void add_guard_endpoints(Endpoints& endpoints, ServiceGuard& guard,
                         std::function<void(std::string_view topic, Json data)> tell);

}  // namespace paceline::daemon
