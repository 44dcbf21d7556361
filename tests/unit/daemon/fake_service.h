// A control socket whose answers a test writes.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/daemon/service_link/control_message.h"
#include "dataplane/attach/message_socket.h"
#include "tests/support/descriptor_message.h"

namespace paceline::daemon {

class FakeService {
 public:
  using Operation = std::function<nlohmann::json(const nlohmann::json&)>;

  explicit FakeService(boost::asio::io_context& context) : context_(context), listening_(context) {
    operations["hello"] = [](const nlohmann::json&) {
      return nlohmann::json{{"ok", true}, {"pid", 1}, {"start_unix_ns", 5}};
    };
  }
  void listen(const std::string& path) {
    attach::Descriptor fd = attach::listen_socket(path, 0600);
    REQUIRE(fd);
    listening_.assign(fd.release());
    boost::asio::co_spawn(context_, accept(), boost::asio::detached);
  }
  void end() {
    boost::system::error_code ignored;
    listening_.close(ignored);
    for (const auto& connection : connections_) connection->close(ignored);
    connections_.clear();
  }

  // A null answer is none at all; a text is sent as it is; an object gets schema and id.
  std::map<std::string, Operation> operations;
  std::vector<nlohmann::json> asked;
  int descriptor = -1;  // goes along with every answer

 private:
  using Socket = boost::asio::posix::stream_descriptor;

  boost::asio::awaitable<void> accept() {
    boost::system::error_code error;
    while (listening_.is_open()) {
      co_await listening_.async_wait(
          Socket::wait_read, boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) co_return;
      const int fd =
          ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) continue;
      connections_.push_back(std::make_shared<Socket>(context_, fd));
      boost::asio::co_spawn(context_, serve(connections_.back()), boost::asio::detached);
    }
  }

  boost::asio::awaitable<void> serve(std::shared_ptr<Socket> socket) {
    boost::system::error_code error;
    std::string text;
    while (socket->is_open()) {
      co_await socket->async_wait(Socket::wait_read,
                                  boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) co_return;
      std::vector<attach::Descriptor> descriptors;
      const Receipt receipt = receive_control(socket->native_handle(), text, descriptors);
      if (receipt == Receipt::nothing_yet) continue;
      if (receipt != Receipt::message) break;
      answer(*socket, nlohmann::json::parse(text));
    }
  }

  void answer(Socket& socket, const nlohmann::json& request) {
    asked.push_back(request);
    const auto operation = operations.find(request.at("op").get<std::string>());
    nlohmann::json reply = operation == operations.end()
                               ? nlohmann::json{{"ok", false}, {"errors", {"no such operation"}}}
                               : operation->second(request);
    if (reply.is_null() || !socket.is_open()) return;
    std::string text;
    if (reply.is_string()) {
      text = reply.get<std::string>();
    } else {
      reply["schema"] = 1;
      if (!reply.contains("id")) reply["id"] = request.at("id");
      text = reply.dump();
    }
    test::send_with_descriptor(socket.native_handle(), text, descriptor);
  }

  boost::asio::io_context& context_;
  Socket listening_;
  std::vector<std::shared_ptr<Socket>> connections_;
};

}  // namespace paceline::daemon
