// The endpoints of the daemon's API. The OpenAPI file, the checks of requests and the documentation
// are made from their descriptions. Rooms add their endpoints; the HTTP server serves them.
// Everything here runs on the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/record.h"

namespace paceline::daemon {

using Json = nlohmann::json;

// The caller: the peer of the Unix socket, or the name of the token.
struct Caller {
  std::string name;  // "root", "alice", "token ci": for the journal
  bool may_write = false;
};

// A parameter of the path or the query, or a member of the body.
using Field = config::RecordField;
using config::FieldType;

// Checked against the endpoint's fields before a handler sees it: required members are present,
// types and ranges hold, and there are no unknown members.
struct Request {
  Caller caller;
  std::map<std::string, std::string, std::less<>> path;
  std::map<std::string, std::string, std::less<>> query;
  Json body = Json::object();

  std::string_view in_path(std::string_view name) const;
  // The text, or the default where it is not given.
  std::string in_query(std::string_view name, std::string_view otherwise = {}) const;
  double number_in_query(std::string_view name, double otherwise) const;
};

struct Reply {
  unsigned status = 200;
  Json body = Json::object();
  // Not empty: sent instead of the body.
  std::string text{};
  std::string content_type = "application/json";
};

// {"errors": [...]}: every reply of 400 and above has this body.
Reply refusal(unsigned status, std::vector<std::string> errors);

struct Endpoint {
  std::string method;   // "GET", "PUT", "POST", "PATCH", "DELETE"
  std::string path;     // "/v1/nics/{nic}"
  std::string summary;  // one line
  std::string tag;      // heading in the description: "telemetry", "parameters", ...
  bool writes = false;  // needs Caller::may_write
  std::vector<Field> path_fields{};
  std::vector<Field> query{};
  std::vector<Field> body{};
  std::string answer{};  // describes the reply's body
  std::function<boost::asio::awaitable<Reply>(Request)> handle{};
};

class Endpoints {
 public:
  void add(Endpoint endpoint) { endpoints_.push_back(std::move(endpoint)); }
  const std::vector<Endpoint>& all() const { return endpoints_; }

 private:
  std::vector<Endpoint> endpoints_;
};

// Events for listeners of /v1/events: {"topic": ..., "data": ...}. Topics: "sample"
// (each second), "parameters", "guard", "trial", "experiment", "tuner", "dataplane".
class EventHub {
 public:
  using Listener = std::function<void(std::string_view topic, const Json& data)>;
  std::uint64_t listen(Listener listener) {
    listeners_.emplace(++last_, std::move(listener));
    return last_;
  }
  void leave(std::uint64_t number) { listeners_.erase(number); }
  void publish(std::string_view topic, const Json& data) {
    // A listener may leave while it is called.
    const auto listeners = listeners_;
    for (const auto& [number, listener] : listeners) listener(topic, data);
  }
  std::size_t listeners() const { return listeners_.size(); }

 private:
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t last_ = 0;
};

}  // namespace paceline::daemon
