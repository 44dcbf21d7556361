// The daemon's connection to the control socket of the service: connects, reconnects, sends one
// request at a time in the order of the calls, and gives up on an answer that does not come.
// Everything runs on the daemon's one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "control/daemon/service_link/async_mutex.h"
#include "control/daemon/service_link/control_message.h"
#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::daemon {

struct ControlSettings {
  std::string path;  // of the control socket
  std::chrono::nanoseconds answer_limit = std::chrono::seconds(5);
  // Between two tries to connect; doubled from one to the next.
  std::chrono::nanoseconds least_wait = std::chrono::milliseconds(20);
  std::chrono::nanoseconds most_wait = std::chrono::milliseconds(500);
};

class ControlClient {
 public:
  ControlClient(boost::asio::io_context& context, ControlSettings settings);
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // Keeps connected until stop(): spawn it once. Each connection begins with `hello`; only then
  // connected() holds. Both functions are called on the daemon's thread: `up` with the answer to
  // hello and the pid of the service (0: unknown); `down` when the connection is lost.
  boost::asio::awaitable<void> run();
  std::function<void(const nlohmann::json& hello, std::int32_t pid)> up;
  std::function<void()> down;
  void stop();
  // stop() was called: calls in progress end without an answer, which is not worth a message.
  bool stopped() const { return stopped_; }

  bool connected() const { return connected_; }
  // At the last try, nothing listened.
  bool absent() const { return absent_; }
  // Why the last try failed; empty while connected.
  const std::string& trouble() const { return trouble_; }

  // Waits for its turn. Members are those of the operation. Without a connection it returns
  // `unanswered` at once. The client outlives the call.
  boost::asio::awaitable<ControlAnswer> call(std::string op, nlohmann::json members);

 private:
  boost::asio::awaitable<ControlAnswer> ask(std::string op, nlohmann::json members);
  bool connect();
  void close(std::string why);

  boost::asio::io_context& context_;
  ControlSettings settings_;
  std::optional<boost::asio::posix::stream_descriptor> socket_;
  boost::asio::steady_timer wait_;   // between tries
  boost::asio::steady_timer limit_;  // of an answer
  AsyncMutex turns_;
  bool connected_ = false;
  bool absent_ = false;
  bool stopped_ = false;
  std::int32_t peer_ = 0;
  std::string trouble_;
  std::uint64_t last_id_ = 0;
};

}  // namespace paceline::daemon
