#include "tools/service_link/control_request.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDescriptors = 4;

ControlConnection::Answer trouble(std::string what) {
  ControlConnection::Answer answer;
  answer.errors.push_back(std::move(what));
  return answer;
}

}  // namespace

int ControlConnection::open(const std::string& socket) {
  socket_ = attach::connect_socket(socket);
  if (!socket_) return errno;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &attach::kConnectPatience,
               sizeof attach::kConnectPatience);
  return 0;
}

ControlConnection::Answer ControlConnection::ask(Json request) {
  request["schema"] = service::kControlSchema;
  request["id"] = ++last_id_;
  const std::string text = request.dump();
  if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) {
    return trouble(std::strerror(errno));
  }
  std::string received(service::kMostControlBytes, '\0');
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> room{};
  iovec part{received.data(), received.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (n < 0) {
    const int error = errno == EAGAIN ? ETIMEDOUT : errno;
    Answer answer = trouble(std::strerror(error));
    answer.code = error;
    return answer;
  }
  if (n == 0) return trouble("it has closed the connection");
  Answer answer;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      answer.descriptors.emplace_back(descriptor);
    }
  }
  answer.body = Json::parse(received.data(), received.data() + n, nullptr, false);
  if (!answer.body.is_object()) return trouble("its answer is not a JSON object");
  if (answer.body.value("ok", false)) return answer;
  const auto errors = answer.body.find("errors");
  if (errors != answer.body.end() && errors->is_array()) {
    for (const Json& error : *errors) {
      if (error.is_string()) answer.errors.push_back(error.get<std::string>());
    }
  }
  if (answer.errors.empty()) answer.errors.emplace_back("it refuses, and does not say why");
  return answer;
}

bool ControlConnection::closed() const {
  char byte = 0;
  const ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace paceline::tools
