#include "dataplane/service/control/control_server.h"

#include <fmt/format.h>
#include <grp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include "dataplane/attach/descriptors/foreign_descriptors.h"
#include "dataplane/attach/message_socket.h"
#include "dataplane/service/memory/credentials.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::service {

namespace {

// Requests that one client may send in a row before other clients get their turn.
constexpr int kControlInARow = 4;

// Sends one whole message with its descriptors. False: the client does not read, or is gone.
bool send_answer(int socket, const ControlAnswer& answer) {
  iovec part{const_cast<char*>(answer.text.data()), answer.text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const std::array<int, 2> descriptors{answer.descriptor, answer.second_descriptor};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> room{};
  if (answer.descriptor >= 0) {
    const std::size_t bytes = sizeof(int) * (answer.second_descriptor >= 0 ? 2 : 1);
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(answer.text.size());
}

pid_t process_at(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

}  // namespace

ControlServer::ControlServer(Service& service, boost::asio::io_context& context,
                             std::string attach_socket, SessionOperations sessions)
    : service_(service),
      congestion_(service),
      operations_(service, congestion_, std::move(attach_socket), std::move(sessions)),
      listening_(context),
      breath_(context),
      look_(context),
      room_(kMostControlBytes + 1) {}

ControlServer::~ControlServer() {
  while (!clients_.empty()) end(clients_.begin());
  if (listening_.is_open())
    attach::close_listening(attach::Descriptor(listening_.release()), aside_);
  if (!path_.empty() && path_.front() != '@') {
    const FileRights rights(service_.privileges().starter);
    ::unlink(path_.c_str());
  }
}

std::string ControlServer::listen(const std::string& path) {
  const std::string& group = service_.settings().control_group;
  if (!group.empty()) {
    errno = 0;
    const struct group* const found = ::getgrnam(group.c_str());
    if (found == nullptr) return fmt::format("service.control_group: there is no group {}", group);
    grouped_ = true;
    group_ = found->gr_gid;
  }
  attach::Descriptor socket = attach::listen_socket(path, grouped_ ? 0660 : 0600);
  if (!socket) {
    return errno == EADDRINUSE ? fmt::format("{}: a service answers there already", path)
                               : fmt::format("{}: {}", path, std::strerror(errno));
  }
  if (grouped_ && path.front() != '@' && ::lchown(path.c_str(), uid_t(-1), group_) != 0) {
    return fmt::format("{}: cannot set its group to {}: {}", path, group, std::strerror(errno));
  }
  path_ = path;
  attach::allow_descriptors(socket.get(), false);
  listening_.assign(socket.release());
  wait_for_clients();
  look_.expires_after(std::chrono::milliseconds(kGuardLookMs));
  wait_for_tick();
  return {};
}

// Ticks are due at fixed times, even if one is served late, so that now_ms_ does not drift.
void ControlServer::wait_for_tick() {
  look_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    now_ms_ += kGuardLookMs;
    congestion_.tick(now_ms_);
    look_.expires_at(look_.expiry() + std::chrono::milliseconds(kGuardLookMs));
    wait_for_tick();
  });
}

void ControlServer::wait_for_clients() {
  listening_.async_wait(Socket::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    if (accept()) {
      wait_for_clients();
      return;
    }
    breath_.expires_after(std::chrono::milliseconds(100));
    breath_.async_wait([this](const boost::system::error_code& ended) {
      if (!ended) wait_for_clients();
    });
  });
}

std::string ControlServer::judge_peer(int socket) const {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return fmt::format("cannot tell the user of a client: {}", std::strerror(errno));
  }
  if (peer.uid == 0 || peer.uid == service_.privileges().owner) return {};
  if (grouped_) {
    if (peer.gid == group_) return {};
    std::array<gid_t, 1024> groups{};
    length = sizeof(groups);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0) {
      const auto end = groups.begin() + length / sizeof(gid_t);
      if (std::find(groups.begin(), end, group_) != end) return {};
    }
  }
  return fmt::format("user {} (process {}) may not control this service", peer.uid, peer.pid);
}

bool ControlServer::accept() {
  attach::Descriptor socket(
      ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (exhausted) spdlog::warn("control: cannot accept connections: {}", std::strerror(errno));
    return !exhausted;
  }
  std::string refused = judge_peer(socket.get());
  if (refused.empty() && clients_.size() >= kMostClients) {
    refused = fmt::format("{} clients are connected already", clients_.size());
  }
  if (!refused.empty()) {
    spdlog::warn("control: {}", refused);
    ControlAnswer answer;
    answer.text = ControlOperations::refuse(refused);
    send_answer(socket.get(), answer);
    aside_.close(std::move(socket));
    return true;
  }
  clients_.emplace_back(listening_.get_executor(), socket.get(),
                        ControlClient{++last_client_, process_at(socket.get())});
  socket.release();
  wait_for_request(std::prev(clients_.end()));
  return true;
}

void ControlServer::wait_for_request(Place at) {
  at->socket.async_wait(Socket::wait_read, [this, at](const boost::system::error_code& error) {
    if (error) return;
    bool goes_on = false;
    try {
      goes_on = serve(*at);
    } catch (const std::exception& wrong) {
      spdlog::warn("control: disconnects a client: {}", wrong.what());
    }
    if (goes_on) {
      wait_for_request(at);
    } else {
      operations_.gone(at->who);
      end(at);
    }
  });
}

// Unread data in the socket is lost when it is closed.
void ControlServer::end(Place at) {
  attach::Descriptor socket(at->socket.release());
  clients_.erase(at);
  aside_.close(std::move(socket));
}

bool ControlServer::serve(Client& client) {
  const int socket = client.socket.native_handle();
  for (int i = 0; i < kControlInARow; ++i) {
    // A client that sends descriptors is disconnected.
    const ssize_t got = attach::receive_plain(socket, std::as_writable_bytes(std::span(room_)));
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0) return false;
    // The room has one byte more than allowed: a longer request fills it and is refused.
    const ControlAnswer answer = operations_.answer(
        std::string_view(room_.data(), static_cast<std::size_t>(got)), client.who);
    if (!send_answer(socket, answer)) return false;
  }
  return true;
}

}  // namespace paceline::service
