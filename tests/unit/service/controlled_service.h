// A service with its control socket, and a client of that.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "dataplane/service/control/control_server.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "tests/unit/service/service_support.h"

namespace paceline::test {

class ControlClient {
 public:
  explicit ControlClient(const std::string& path) : socket_(attach::connect_socket(path)) {
    REQUIRE(socket_);
  }
  bool send(const std::string& text) {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  nlohmann::json receive() {
    std::vector<char> room(service::kMostControlBytes);
    alignas(cmsghdr) std::array<char, 64> control{};
    iovec part{room.data(), room.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return {};
    descriptor.reset();
    second_descriptor.reset();
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
      descriptor.reset(fd);
      if (header->cmsg_len >= CMSG_LEN(2 * sizeof(fd))) {
        std::memcpy(&fd, CMSG_DATA(header) + sizeof(fd), sizeof(fd));
        second_descriptor.reset(fd);
      }
    }
    return nlohmann::json::parse(room.data(), room.data() + got);
  }
  nlohmann::json ask(const std::string& op, nlohmann::json members = nlohmann::json::object()) {
    members["schema"] = 1;
    members["id"] = ++id_;
    members["op"] = op;
    REQUIRE(send(members.dump()));
    nlohmann::json answer = receive();
    REQUIRE(answer.value("id", 0) == id_);
    INFO(answer.dump());
    CHECK(answer.value("ok", false) == !answer.contains("errors"));
    return answer;
  }
  nlohmann::json good(const std::string& op, nlohmann::json members = nlohmann::json::object()) {
    nlohmann::json answer = ask(op, std::move(members));
    INFO(answer.dump());
    REQUIRE(answer.at("ok") == true);
    return answer;
  }
  std::vector<std::string> errors(const std::string& op,
                                  nlohmann::json members = nlohmann::json::object()) {
    return ask(op, std::move(members)).value("errors", std::vector<std::string>{});
  }

  attach::Descriptor descriptor;
  attach::Descriptor second_descriptor;

 private:
  attach::Descriptor socket_;
  int id_ = 0;
};

struct ControlledService {
  explicit ControlledService(std::vector<std::unique_ptr<service::NicSet>> nics = two_hosts())
      : running({}, std::move(nics)) {
    running.on_control([this] {
      control = std::make_unique<service::ControlServer>(
          running.service(), running.server().context(), running.path(),
          service::SessionOperations{
              [this] { return running.server().status_of_all(); },
              [this](service::NicPlace place) { running.server().take_away(place); }});
      wrong = control->listen(service::control_socket_beside(running.path()));
    });
    REQUIRE(wrong.empty());
  }
  ~ControlledService() { running.stop(); }

  RunningService running;
  std::unique_ptr<service::ControlServer> control;
  std::string wrong;
};

}  // namespace paceline::test
