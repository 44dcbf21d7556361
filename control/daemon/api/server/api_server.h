// The API of the daemon over HTTP/1.1: on a Unix socket, where the kernel says who asks, and on TCP
// with TLS and a token. All of it runs in the coroutines of one Asio thread. A client that is slow,
// silent or hostile costs the others nothing: everything it may use is limited, and no exception of
// a handler ends more than its own request.
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
  std::uint64_t turned_away = 0;  // none was idle to make room
  std::uint64_t made_room = 0;    // idle ones closed for new ones
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
  // stop(); what still waits in a handler is left to the context, and touches the hub no more.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Listens. Not empty: why not; then nothing is open.
  std::string start();
  // Listens no more, closes who idles or listens to events. Requests under way are answered while
  // the context runs on; connections() == 0 when the last is.
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
