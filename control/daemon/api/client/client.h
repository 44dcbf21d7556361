// Asks a daemon, for the command line: one request after the other, each waited for. Every call has
// a connection of its own.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// Answer to one request: either `error`, a sentence, or the status and the body.
struct Answer {
  std::string error{};  // no daemon answers, not permitted, not a daemon, too late
  unsigned status = 0;
  Json body{};         // null where the answer is not JSON
  std::string text{};  // as it came

  bool good() const { return error.empty() && status >= 200 && status < 300; }
  // For people: the error, or the errors the daemon gave, a line each. Empty where all is good.
  std::string complaint() const;
};

class Client {
 public:
  explicit Client(std::string socket_path,
                  std::chrono::milliseconds patience = std::chrono::seconds(10))
      : path_(std::move(socket_path)), patience_(patience) {}

  // `target` as in HTTP, path and query encoded (target.h: percent_encoded). A null body: none.
  Answer request(std::string_view method, std::string_view target,
                 const Json& body = nullptr) const;
  Answer get(std::string_view target) const { return request("GET", target); }

  // Calls back for every event until the callback returns false, or the daemon ends or drops this
  // listener; waits for events without limit. Empty: the callback ended it; else the reason.
  using OnEvent = std::function<bool(std::string_view topic, const Json& data)>;
  std::string listen(std::string_view topics, const OnEvent& on_event) const;

 private:
  std::string path_;
  std::chrono::milliseconds patience_;
};

}  // namespace paceline::daemon
