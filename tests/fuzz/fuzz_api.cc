// libFuzzer target for a request to the daemon's API: from bytes to the endpoint or the refusal, as
// the server does it but for sockets. Promises: nothing is thrown; a refusal is a 4xx with errors
// in UTF-8; what is admitted holds nothing but what its endpoint describes. Seeds: corpus/api.
#include <algorithm>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "control/daemon/api/check.h"
#include "control/daemon/api/client/event_parser.h"
#include "control/daemon/api/router.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"
#include "tests/unit/daemon_api/served.h"

namespace {

namespace http = boost::beast::http;
using namespace paceline::daemon;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "fuzz_api: %s\n", what);
  std::abort();
}

bool described(const std::vector<Field>& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
}

void check_admission(const Admission& admission, bool may_write) {
  if (admission.endpoint == nullptr) {
    const Reply& reply = admission.refused;
    expect(reply.status >= 400 && reply.status < 500, "a refusal is not a 4xx");
    expect(reply.body.at("errors").size() > 0, "a refusal without a reason");
    expect(reply.status != 405 || !admission.allow.empty(), "405 without Allow");
    static_cast<void>(reply.body.dump());  // throws at broken UTF-8
    return;
  }
  const Endpoint& endpoint = *admission.endpoint;
  expect(may_write || !endpoint.writes, "written without the right");
  for (const auto& [name, value] : admission.request.query) {
    expect(described(endpoint.query, name), "an unknown parameter was admitted");
    expect(paceline::is_utf8(value), "a parameter is not UTF-8");
  }
  for (const auto& [name, value] : admission.request.body.items()) {
    expect(described(endpoint.body, name), "an unknown member was admitted");
  }
  for (const Field& field : endpoint.body) {
    expect(!field.required || admission.request.body.contains(field.name), "a member is missing");
  }
  // What was checked stays good when it is checked again.
  Json again = admission.request.body;
  std::vector<std::string> errors;
  check_body(endpoint.body, again, errors);
  expect(errors.empty() && again == admission.request.body, "a second check finds something");
}

void route(const Router& router, const Incoming& incoming) {
  for (const bool may_write : {false, true}) {
    check_admission(router.admit(incoming, {"fuzz", may_write}), may_write);
  }
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// A whole HTTP message.
void parse_and_route(const Router& router, std::string_view text) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(16 << 10);
  parser.body_limit(256 << 10);
  parser.eager(true);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(text), error);
  if (error || !parser.is_done()) return;
  const auto& message = parser.get();
  route(router, {view(message.method_string()), view(message.target()),
                 view(message[http::field::content_type]), message.body()});
}

// Method by the second byte, target up to the first line end, the rest is the body: deeper than
// HTTP lets most inputs come.
void route_directly(const Router& router, std::string_view text) {
  static constexpr std::string_view kMethods[] = {"GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"};
  const std::string_view method = kMethods[static_cast<unsigned char>(text[0]) % 6];
  text.remove_prefix(1);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  route(router, {method, text.substr(0, end), "application/json", body});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const Router router(paceline::test::echoing_endpoints());
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      parse_and_route(router, text);
      break;
    case 1:
      route_directly(router, text);
      break;
    case 2: {
      EventParser parser;
      parser.take(text, [](std::string_view, std::string_view) { return true; });
      break;
    }
  }
  return 0;
}
