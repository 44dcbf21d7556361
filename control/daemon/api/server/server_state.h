// State shared by the server and its connections; internal to this room. Connections own it
// together, so it lives until the last of their coroutines has ended.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon/api/router.h"
#include "control/daemon/api/server/api_server.h"
#include "control/daemon/api/server/places.h"
#include "control/daemon/api/server/tokens.h"
#include "control/daemon/api/server/unix_socket.h"
#include "control/daemon/api/stream/byte_stream.h"
#include "dataplane/attach/descriptors/aside.h"

namespace paceline::daemon {

struct Connection {
  explicit Connection(std::unique_ptr<ByteStream> from) : stream(std::move(from)) {}

  void close() {
    closing = true;
    stream->close();
  }

  std::unique_ptr<ByteStream> stream;
  std::string unread;  // bytes that came after the last request
  bool closing = false;
  bool busy = false;     // a request is being answered
  bool listens = false;  // to events, until it ends
  bool may_read = true;
  bool metrics_only = false;       // kMetricsPaths
  std::optional<Caller> caller{};  // none: the token of each request says
};

using Connections = std::list<std::shared_ptr<Connection>>;

struct ServerState {
  ServerState(ApiSettings wanted, EventHub& events)
      : settings(std::move(wanted)),
        hub(&events),
        // Twice as many as may be open: a connection that makes room takes a moment to end.
        local_callers("connections", {2 * settings.most_connections, settings.most_connections / 4,
                                      settings.most_connections * 5 / 4}),
        listeners("listeners", {settings.most_listeners, settings.most_listeners / 4,
                                settings.most_listeners / 4}) {}

  // Ends the longest idle connection if there are too many. False: none is idle.
  bool make_room();
  void stop();

  ApiSettings settings;
  // Closes the sockets of clients, in which their descriptors may lie.
  std::shared_ptr<attach::Aside> aside = std::make_shared<attach::Aside>(256);
  EventHub* hub;  // null after stop()
  std::optional<Router> router;
  std::string description;  // OpenAPI, as text
  Tokens tokens;
  LocalAccess access;
  Places local_callers;  // of connections to the Unix socket
  Places listeners;      // of events
  UnixListener listener;
  Connections connections;  // those that idle in the order in which they began to
  bool stopped = false;
  ApiCounts counts{};
  std::uint16_t port = 0;
  std::uint16_t metrics_port = 0;
  std::string metrics_trouble;
  std::vector<std::function<void()>> close_acceptors;
};

// In the list for as long as it lives.
class Membership {
 public:
  Membership(std::shared_ptr<ServerState> state, std::shared_ptr<Connection> connection)
      : state_(std::move(state)),
        at_(state_->connections.insert(state_->connections.end(), std::move(connection))) {}
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership() { state_->connections.erase(at_); }

  void set_busy(bool busy) {
    (*at_)->busy = busy;
    if (!busy) state_->connections.splice(state_->connections.end(), state_->connections, at_);
  }

 private:
  std::shared_ptr<ServerState> state_;
  Connections::iterator at_;
};

}  // namespace paceline::daemon
