// A connection to a daemon that stays open between requests, for callers that ask often, or ask
// many daemons at a time. One request after the other; on one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "control/daemon/api/client/client.h"
#include "control/daemon/api/client/daemon_place.h"

namespace paceline::daemon {

class DaemonLine {
 public:
  // Both must outlive this.
  DaemonLine(boost::asio::io_context& context, const DaemonPlace& place);
  ~DaemonLine();
  DaemonLine(const DaemonLine&) = delete;
  DaemonLine& operator=(const DaemonLine&) = delete;

  // Connects if it is not connected. A daemon ends a connection that is idle; then it is asked once
  // more. Errors begin with the place.
  boost::asio::awaitable<Answer> ask(std::string method, std::string target, Json body,
                                     std::chrono::milliseconds patience);
  // All pending operations fail.
  void close();

  class Wire;  // its bytes, whatever the transport

 private:
  boost::asio::awaitable<std::string> connect(std::chrono::milliseconds patience);
  boost::asio::awaitable<std::string> look_up();

  boost::asio::io_context& context_;
  const DaemonPlace& place_;
  std::vector<boost::asio::ip::tcp::endpoint> addresses_;
  std::unique_ptr<Wire> wire_;  // null: not connected
};

}  // namespace paceline::daemon
