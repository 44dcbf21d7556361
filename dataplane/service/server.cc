#include "dataplane/service/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/attach/text.h"
#include "dataplane/service/memory/program_memory.h"
#include "dataplane/service/status.h"

namespace paceline::service {

namespace {

// Of one program in a row, before others are asked.
constexpr int kRequestsInARow = 16;

bool credentials_of(int socket, Peer& peer) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  peer = {credentials.pid, credentials.uid, nullptr};
  return true;
}

// Each message that is received says from then on which process sent it (attach::Message::sender).
void tell_senders(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
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
  attach::put_text(complaint.text, verdict.why);
  return attach::send_message(socket, header, std::as_bytes(std::span(complaint.text)));
}

}  // namespace

std::string Server::listen(const std::string& path) {
  const ServiceSettings& settings = service_.settings();
  const unsigned mode = settings.open || !settings.users.empty() ? 0666 : 0600;
  attach::Descriptor socket = attach::listen_socket(path, mode);
  if (!socket) {
    return errno == EADDRINUSE ? fmt::format(
                                     "{}: a service answers there already; end it first, or choose "
                                     "another --socket",
                                     path)
                               : fmt::format("{}: {}", path, std::strerror(errno));
  }
  tell_senders(socket.get());
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
                          if (accept()) {
                            wait_for_programs();
                            return;
                          }
                          breath_.expires_after(std::chrono::milliseconds(100));
                          breath_.async_wait([this](const boost::system::error_code& ended) {
                            if (!ended) wait_for_programs();
                          });
                        });
}

bool Server::accept() {
  attach::Descriptor socket(
      ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (exhausted) spdlog::warn("a program could not be let in: {}", std::strerror(errno));
    return !exhausted;
  }
  tell_senders(socket.get());
  Peer peer;
  if (!credentials_of(socket.get(), peer)) return true;
  if (!service_.may_attach(peer.user)) {
    spdlog::warn("user {} (process {}) may not attach", peer.user, peer.pid);
    answer(socket.get(), {}, {EACCES, "this user may not use this service"}, {});
    return true;
  }
  try {
    peer.program = std::make_shared<ProgramMemory>(socket.get());
    connections_.emplace_back(context_, std::move(socket), service_, peer);
  } catch (const std::exception& error) {
    spdlog::warn("a program could not be let in: {}", error.what());
    return false;
  }
  Connection& connection = connections_.back();
  if (connection.session.admitted()) {
    wait_for_request(std::prev(connections_.end()));
  } else {
    answer(connection.socket.native_handle(), {},
           {EUSERS, "this user has as many sessions as it may have"}, {});
    connections_.pop_back();
  }
  return true;
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

// A program for which there is no memory or no thread is sent away; the others are served on.
bool Server::serve(Connection& connection) {
  try {
    return serve_some(connection);
  } catch (const std::exception& error) {
    spdlog::warn("session {} is ended: {}", connection.session.number(), error.what());
    return false;
  }
}

bool Server::serve_some(Connection& connection) {
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
    const Verdict verdict = request.header.operation == attach::Operation::status
                                ? status(connection.session, reply)
                                : connection.session.handle(request, reply);
    if (verdict.error != 0) {
      spdlog::debug("session {}: operation {} refused: {} ({})", connection.session.number(),
                    static_cast<unsigned>(request.header.operation), verdict.why,
                    std::strerror(verdict.error));
    }
    // Who does not read replies cannot ask.
    if (answer(socket, request.header, verdict, reply) != attach::Transfer::done) return false;
    if (verdict.error == EPROTO) return false;
  }
  return true;
}

std::string Server::status_of_all() {
  std::vector<const Session*> sessions;
  for (const Connection& connection : connections_) sessions.push_back(&connection.session);
  return status_text(service_, sessions, std::nullopt);
}

Verdict Server::status(const Session& asking, Reply& reply) {
  if (!asking.greeted()) return {EPROTO, "the first request is hello"};
  std::vector<const Session*> sessions;
  for (const Connection& connection : connections_) sessions.push_back(&connection.session);
  const uid_t user = asking.peer().user;
  const bool sees_all = user == 0 || user == ::geteuid();
  const std::string text =
      status_text(service_, sessions, sees_all ? std::nullopt : std::optional(user));
  const auto bytes = std::as_bytes(std::span(text));
  if (bytes.size() <= attach::kMaxStatusBody) {
    reply.body.assign(bytes.begin(), bytes.end());
    return {};
  }
  if (!status_.make("paceline-status", bytes.size())) return {ENOMEM, "shared memory"};
  std::copy(bytes.begin(), bytes.end(), status_.data());
  reply.descriptors = {status_.descriptor()};
  return {};
}

}  // namespace paceline::service
