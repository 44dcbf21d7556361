// The control thread: accepts programs on a Unix socket, reads their requests one at a time, and
// ends with stop() or a signal. A program that is slow, silent or hostile costs nobody else more
// than its own requests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <memory>
#include <string>

#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/service.h"
#include "dataplane/service/session.h"

namespace paceline::service {

class Server {
 public:
  explicit Server(Service& service) : service_(service), listening_(context_), breath_(context_) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens at `path`. What is wrong, empty: nothing.
  std::string listen(const std::string& path);
  // Until stop(), which any thread and any handler may call; then every session is closed.
  void run();
  void stop() { context_.stop(); }
  boost::asio::io_context& context() { return context_; }
  std::size_t connections() const { return connections_.size(); }
  // What `status` replies to somebody who sees all. Of the context's thread.
  std::string status_of_all();

 private:
  struct Connection {
    Connection(boost::asio::io_context& context, attach::Descriptor fd, Service& service, Peer peer)
        : socket(context, fd.get()), session(service, peer) {
      fd.release();
    }
    boost::asio::posix::stream_descriptor socket;
    Session session;
  };
  using Place = std::list<Connection>::iterator;

  void wait_for_programs();
  // False: there are no descriptors left.
  bool accept();
  void wait_for_request(Place at);
  // False: the connection is over.
  bool serve(Connection& connection);
  bool serve_some(Connection& connection);
  Verdict status(const Session& asking, Reply& reply);

  Service& service_;
  boost::asio::io_context context_;
  boost::asio::posix::stream_descriptor listening_;
  boost::asio::steady_timer breath_;  // until descriptors may be there again
  std::list<Connection> connections_;
  attach::SharedMemory status_;  // the last text that was too long for a message
  std::string path_;
};

}  // namespace paceline::service
