// Finds the endpoint that answers a client's request, or the refusal. Pure: no sockets, no clock;
// the server, the fuzzer and the tests call the same code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// A request as the HTTP layer read it, not decoded.
struct Incoming {
  std::string_view method;  // as on the wire: "GET", "HEAD", ...
  std::string_view target;
  std::string_view content_type;
  std::string_view body;
};

// Either `endpoint` with a checked `request`, or `refused`.
struct Admission {
  const Endpoint* endpoint = nullptr;
  Request request{};
  Reply refused{};
  std::string allow{};  // with status 405: the value of the header Allow
};

class Router {
 public:
  // The endpoints, which are copied, and those every server has (own_endpoints).
  explicit Router(const Endpoints& endpoints);

  // Descriptions that contradict themselves or each other, a sentence each. A server with such
  // does not start.
  std::vector<std::string> contradictions() const;

  // HEAD is answered by GET. Errors of path, query and body come together.
  Admission admit(const Incoming& incoming, const Caller& caller) const;

  const std::vector<Endpoint>& endpoints() const { return endpoints_; }

 private:
  struct Route {
    std::vector<std::string> segments;  // a name in braces stands for any text
    std::size_t endpoint;
  };
  // The routes with the most literal template among those that match the path.
  std::vector<const Route*> fitting(const std::vector<std::string>& path) const;
  Reply not_found(const std::vector<std::string>& path) const;

  std::vector<Endpoint> endpoints_;
  std::vector<Route> routes_;
};

inline constexpr std::string_view kEventsPath = "/v1/events";
inline constexpr std::string_view kOpenApiPath = "/v1/openapi.json";

// The descriptions of what the server itself answers; they have no handler.
std::vector<Endpoint> own_endpoints();

}  // namespace paceline::daemon
