// Asks all hosts of a fleet at once, by connections that stay open.
#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "control/daemon/api/client/daemon_line.h"
#include "tools/fleet/fleet_file.h"

namespace paceline::tools {

class FleetLines {
 public:
  // It must outlive this.
  explicit FleetLines(const std::vector<FleetHost>& hosts);

  struct Request {
    std::string method;  // empty: this host is not asked
    std::string target;
    daemon::Json body{};
    std::chrono::milliseconds patience{10'000};
  };
  // One request for each host; returns when all have answered or run out of patience. Ctrl-C ends
  // it at once: hosts without an answer yet have an error.
  std::vector<daemon::Answer> ask(std::vector<Request> requests);
  // The same request to all.
  std::vector<daemon::Answer> ask_all(const Request& request) {
    return ask(std::vector<Request>(lines_.size(), request));
  }

 private:
  boost::asio::io_context context_;
  std::vector<std::unique_ptr<daemon::DaemonLine>> lines_;
  bool lost_ = false;  // requests that could not be ended are still in progress
};

}  // namespace paceline::tools
