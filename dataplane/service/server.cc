#include "dataplane/service/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace paceline::service {

namespace {

// Of one program in a row, before others are asked.
constexpr int kRequestsInARow = 16;

bool credentials_of(int socket, Peer& peer) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  peer = {credentials.pid, credentials.uid};
  return true;
}

attach::Transfer answer(int socket, const attach::Header& request, const Verdict& verdict,
                        const Reply& reply) {
  attach::Header header;
  header.operation = request.operation;
  header.sequence = request.sequence;
  header.error = verdict.error;
  if (verdict.error == 0) {
    return attach::send_message(socket, header, reply.body, reply.descriptors);
  }
  attach::Complaint complaint;
  std::copy_n(verdict.why.data(), std::min(verdict.why.size(), complaint.text.size() - 1),
              complaint.text.data());
  return attach::send_message(socket, header, std::as_bytes(std::span(complaint.text)));
}

}  // namespace

std::string Server::listen(const std::string& path) {
  const ServiceSettings& settings = service_.settings();
  const unsigned mode = settings.open || !settings.users.empty() ? 0666 : 0600;
  attach::Descriptor socket = attach::listen_socket(path, mode);
  if (!socket) {
    return errno == EADDRINUSE
               ? fmt::format("{}: a service answers there already; end it first, or choose "
                             "another --socket", path)
               : fmt::format("{}: {}", path, std::strerror(errno));
  }
  path_ = path;
  listening_.assign(socket.release());
  wait_for_programs();
  return {};
}

void Server::run() {
  context_.run();
  listening_.close();
  if (!path_.empty() && path_.front() != '@') ::unlink(path_.c_str());
  connections_.clear();
}

void Server::wait_for_programs() {
  listening_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this](const boost::system::error_code& error) {
                          if (error) return;
                          accept();
                          wait_for_programs();
                        });
}

void Server::accept() {
  attach::Descriptor socket(::accept4(listening_.native_handle(), nullptr, nullptr,
                                      SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      spdlog::warn("a program could not be let in: {}", std::strerror(errno));
    }
    return;
  }
  Peer peer;
  if (!credentials_of(socket.get(), peer)) return;
  if (!service_.may_attach(peer.user)) {
    spdlog::warn("user {} (process {}) may not attach", peer.user, peer.pid);
    attach::Header header;
    answer(socket.get(), header, {EACCES, "this user may not use this service"}, {});
    return;
  }
  connections_.emplace_back(context_, socket.release(), service_, peer);
  wait_for_request(std::prev(connections_.end()));
}

void Server::wait_for_request(Place at) {
  at->socket.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this, at](const boost::system::error_code& error) {
                          if (error) return;
                          if (serve(*at)) {
                            wait_for_request(at);
                          } else {
                            connections_.erase(at);
                          }
                        });
}

bool Server::serve(Connection& connection) {
  const int socket = connection.socket.native_handle();
  for (int i = 0; i < kRequestsInARow; ++i) {
    attach::Message request;
    switch (attach::receive_message(socket, request)) {
      case attach::Transfer::done:
        break;
      case attach::Transfer::again:
        return true;
      case attach::Transfer::broken:
        answer(socket, request.header, {EPROTO, "not a message of this protocol"}, {});
        return false;
      case attach::Transfer::closed:
      case attach::Transfer::failed:
        return false;
    }
    Reply reply;
    const Verdict verdict = connection.session.handle(request, reply);
    if (verdict.error != 0) {
      spdlog::debug("session {}: operation {} refused: {} ({})", connection.session.number(),
                    static_cast<unsigned>(request.header.operation), verdict.why,
                    std::strerror(verdict.error));
    }
    // Who does not read replies cannot ask.
    if (answer(socket, request.header, verdict, reply) != attach::Transfer::done) return false;
    if (verdict.error == EPROTO || verdict.error == EUSERS) return false;
  }
  return true;
}

}  // namespace paceline::service
