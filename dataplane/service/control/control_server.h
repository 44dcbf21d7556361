// The control socket: accepts the daemon and operators' tools beside the programs, on the same
// thread, and drives the controller's ticks. No client can hold the thread up: messages are
// bounded, sockets never block, and a client that does not read answers is disconnected.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/service/congestion/congestion_controller.h"
#include "dataplane/service/control/control_operations.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class ControlServer {
 public:
  static constexpr std::size_t kMostClients = 32;

  // Requires that the service has been started. All arguments outlive this, and the context no
  // longer runs when it is destroyed.
  ControlServer(Service& service, boost::asio::io_context& context, std::string attach_socket,
                SessionOperations sessions);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Listens at `path` and begins to tick. Returns an error, or an empty text.
  std::string listen(const std::string& path);
  const std::string& path() const { return path_; }
  // For the context's thread.
  CongestionController& controller() { return congestion_; }
  std::size_t clients() const { return clients_.size(); }

 private:
  using Socket = boost::asio::posix::stream_descriptor;
  struct Client {
    Client(const boost::asio::any_io_executor& executor, int descriptor, ControlClient client)
        : socket(executor, descriptor), who(client) {}
    Socket socket;
    ControlClient who;
  };
  using Place = std::list<Client>::iterator;

  void wait_for_clients();
  // False: there are no descriptors left.
  bool accept();
  // Why the peer may not use the socket; empty: it may.
  std::string judge_peer(int socket) const;
  void wait_for_request(Place at);
  // False: the connection is over.
  bool serve(Client& client);
  void end(Place at);
  void wait_for_tick();

  Service& service_;
  attach::Aside aside_{64};
  CongestionController congestion_;
  ControlOperations operations_;
  Socket listening_;
  boost::asio::steady_timer breath_;  // until descriptors may be there again
  boost::asio::steady_timer look_;
  std::uint64_t now_ms_ = 0;  // since the start
  std::list<Client> clients_;
  std::uint64_t last_client_ = 0;
  std::vector<char> room_;  // for one request
  bool grouped_ = false;    // members of a group may connect, too
  unsigned group_ = 0;
  std::string path_;
};

}  // namespace paceline::service
