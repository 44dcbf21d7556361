// The control thread: accepts programs on a Unix socket, reads their requests one at a time, and
// ends with stop() or a signal. A slow, silent or hostile program costs others no more than its own
// requests: work that a program can delay (on its descriptors, its pages) is done on side threads,
// and only its own session waits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/sessions/management_link.h"
#include "dataplane/service/sessions/session.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class Server {
 public:
  explicit Server(Service& service);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens at `path`. Returns an error, or an empty text.
  std::string listen(const std::string& path);
  // Until stop(), which any thread and any handler may call; then every session is closed.
  void run();
  void stop() { context_.stop(); }
  boost::asio::io_context& context() { return context_; }
  std::size_t connections() const { return connections_.size(); }
  // An instance leaves the machine: its programs and their rdma_cm ids are told and lose it, and
  // nobody can open it again. For the context's thread, like the calls below.
  void take_away(NicPlace place);
  // The reply to `status` for a user who may see all sessions.
  std::string status_of_all();

 private:
  struct Connection {
    Connection(boost::asio::io_context& context, Service& service, cm::CmService& cm, Peer peer)
        : socket(context), session(service, cm, peer) {}
    boost::asio::posix::stream_descriptor socket;
    Session session;
    bool under_way = false;  // an errand is
    bool over = false;       // it ends with that
  };
  using Place = std::list<Connection>::iterator;
  // One request whose answer waits for work on a side thread.
  struct Errand {
    attach::Header header{};
    Status status;
    Reply reply;
    std::exception_ptr thrown;  // by the work aside
  };
  // How the threads aside reach the control thread, as long as it runs.
  struct WayBack;
  enum class Next : std::uint8_t { request, errand, end };

  void wait_for_programs();
  // False: there are no descriptors left.
  bool accept();
  void wait_for_request(Place at);
  // A program for which there is no memory or no thread is sent away; the others are still served.
  template <class Serve>
  void guarded(Place at, Serve serve);
  // Ends the sessions whose programs took pages out of registered memory (view_guard.h).
  void wait_for_spoilt_views();
  void end_spoilt_sessions();
  // At once, or when its errand is done.
  void end_soon(Place at) {
    at->over = true;
    if (!at->under_way) end(at);
  }
  Next serve_some(Place at);
  Next finish(Place at, const std::shared_ptr<Errand>& errand);
  void end(Place at);
  Status status(const Session& asking, Reply& reply);
  std::string status_of(std::optional<uid_t> only);

  Service& service_;
  attach::Aside& aside_;
  attach::Aside strangers_{16};  // closes the connections of those who are not let in
  boost::asio::io_context context_;
  std::shared_ptr<WayBack> way_back_;
  boost::asio::posix::stream_descriptor listening_;
  boost::asio::steady_timer breath_;  // until descriptors may be there again
  boost::asio::posix::stream_descriptor spoilt_views_;
  ManagementLink management_;
  cm::CmService cm_;
  std::list<Connection> connections_;
  attach::SharedMemory status_;  // the last text that was too long for a message
  std::string path_;
};

}  // namespace paceline::service
