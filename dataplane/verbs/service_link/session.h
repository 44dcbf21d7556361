// The program's end of an attach connection: one request, one reply, whichever thread asks.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>

#include "dataplane/attach/descriptors/own_descriptor.h"
#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/verbs/service_link/presence.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::verbs {

class Session {
 public:
  // Connects and says hello. 0 or an errno; ETIMEDOUT if a server listens but does not answer. The
  // owner of both keeps Presence.
  int connect(const Settings& settings, Presence* presence = nullptr);

  // 0, or the errno that the service answered with; EIO when it is gone, or was never there for
  // this process (a child of fork). May throw std::bad_alloc.
  int exchange(attach::Operation operation, std::span<const std::byte> body, attach::Message& reply,
               std::span<const int> descriptors = {});

  template <class Request>
  int ask(attach::Operation operation, const Request& request, attach::Message& reply) {
    return exchange(operation, std::as_bytes(std::span(&request, 1)), reply);
  }
  // For replies without descriptors.
  template <class Request, class Reply>
  int ask(attach::Operation operation, const Request& request, Reply& out) {
    attach::Message reply;
    const int error = ask(operation, request, reply);
    if (error == 0) out = reply.as<Reply>();
    return error;
  }
  template <class Request>
  int tell(attach::Operation operation, const Request& request) {
    attach::Message reply;
    return ask(operation, request, reply);
  }
  // Requests that name only an object.
  int drop(attach::Operation operation, std::uint32_t handle) {
    return tell(operation, attach::HandleBody{handle, 0});
  }

  // Asks the kernel whether the other end is still there; calls lost() when it is not.
  bool look();

  // The service is gone: marks Presence, and reports it on standard error, once per process. Or it
  // has taken the device away, by `last_word` or by a message that is still to be read; then it
  // reports that.
  void lost(const char* last_word = nullptr) noexcept;

  const attach::HelloReply& service() const { return service_; }
  int descriptor() const { return socket_.get(); }
  bool logs() const { return log_; }

 private:
  int lose();
  int dismissed();
  std::string path_;
  attach::OwnDescriptor socket_;
  Presence* presence_ = nullptr;
  std::mutex mutex_;
  std::uint32_t sequence_ = 0;
  // Its memory is kept from connect() on: if an answer could not be read for lack of memory, it
  // would be taken for the answer to the next request.
  attach::Message received_;
  attach::HelloReply service_{};
  bool log_ = false;
};

}  // namespace paceline::verbs
