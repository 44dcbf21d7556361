// The API of the daemon over HTTP/1.1: on a Unix socket, where the kernel identifies the caller,
// and on TCP with TLS and a token. All of it runs in coroutines of one Asio thread. A slow, silent
// or hostile client costs the others nothing: everything that it may use is limited, and an
// exception of a handler ends only its own request.
#pragma once

#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/api/server/api_settings.h"

namespace paceline::daemon {

struct ServerState;

struct ApiCounts {
  std::uint64_t connections = 0;  // accepted
  std::uint64_t turned_away = 0;  // refused: no connection was idle to make room
  std::uint64_t made_room = 0;    // idle connections closed to make room
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;         // 4xx
  std::uint64_t failed = 0;          // 5xx
  std::uint64_t events = 0;          // sent to listeners
  std::uint64_t slow_listeners = 0;  // let go
};

class ApiServer {
 public:
  // `context`, `endpoints` and `hub` outlive it. Endpoints may be added until start().
  ApiServer(boost::asio::io_context& context, ApiSettings settings, const Endpoints& endpoints,
            EventHub& hub);
  // Calls stop(). Work that still waits in a handler is left to the context, and does not touch the
  // hub any more.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Starts to listen. Returns an error, with nothing open, or an empty text.
  std::string start();
  // Stops listening, and closes connections that are idle or listen to events. Requests in progress
  // are answered while the context runs; connections() == 0 once the last one is.
  void stop();

  std::size_t connections() const;
  std::uint16_t port() const;          // of TCP; 0: none
  std::uint16_t metrics_port() const;  // 0: none
  // Why there is no listener for metrics, where one was asked for; the rest works without it.
  const std::string& metrics_trouble() const;
  ApiCounts counts() const;

 private:
  std::string open_unix();
  std::string open_tcp();
  void open_metrics();

  boost::asio::io_context& context_;
  const Endpoints& endpoints_;
  std::shared_ptr<ServerState> state_;
};

}  // namespace paceline::daemon
