// Probing between hosts, on request of the API: this daemon's service opens queue pairs for probes
// and answers, learns its peers on other hosts, and reports the results. It has a connection of its
// own to the service: probing ends with it, or when its time is over.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/service_link/control_client.h"

namespace paceline::daemon {

class Probes {
 public:
  Probes(boost::asio::io_context& context, ControlSettings service);

  // `body` of open: seconds, after which it ends.
  boost::asio::awaitable<Reply> open(std::string who, Json body);
  boost::asio::awaitable<Reply> begin(Json body);
  boost::asio::awaitable<Reply> figures();
  Reply end();
  void stop();

 private:
  using Client = std::shared_ptr<ControlClient>;
  boost::asio::awaitable<Reply> ask(Client client, std::string op, Json members);
  boost::asio::awaitable<bool> connect(Client client);

  boost::asio::io_context& context_;
  ControlSettings service_;
  Client client_;  // null: there is no probing
  std::string who_;
  boost::asio::steady_timer until_;
};

// /v1/probes.
void add_probe_endpoints(Endpoints& endpoints, Probes& probes);

}  // namespace paceline::daemon
