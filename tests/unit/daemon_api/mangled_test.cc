// Requests to every endpoint, mangled: whatever comes, the server answers below 500 or ends the
// connection, and lives.
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "control/daemon/api/router.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

std::size_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident;
}

std::string one_of(Random& random, const std::vector<std::string>& choices) {
  return choices[random.next() % choices.size()];
}

std::string value_of_some_kind(Random& random) {
  return one_of(random, {"1", "-1", "0", "1e999", "true", "null", "\"x\"", "\"now\"", "[]", "{}",
                         "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "18446744073709551616",
                         "\"\\ud800\"", "\"\xff\"", "{\"a\":1,\"a\":2}", "NaN",
                         "\"" + std::string(random.next() % 3000, 'v') + "\""});
}

std::string body_for(Random& random, const Endpoint& endpoint) {
  std::string body = "{";
  for (const auto& field : endpoint.body) {
    if (random.next() % 8 == 0) continue;
    if (body.size() > 1) body += ",";
    body += "\"" + field.name + "\":" + value_of_some_kind(random);
  }
  return body + "}";
}

std::string target_for(Random& random, const Endpoint& endpoint) {
  std::string target;
  bool in_name = false;
  for (const char c : endpoint.path) {
    if (c == '{') target += one_of(random, {"a", "1", "%2F", "%00", "", "%", "..", "\xff", "0x1"});
    in_name = c == '{' || (in_name && c != '}');
    if (!in_name && c != '}') target += c;
  }
  char separator = '?';
  for (const auto& field : endpoint.query) {
    if (random.next() % 2 == 0) continue;
    target += separator + field.name + "=" +
              one_of(random, {"1", "", "-5", "nan", "true", "%zz", "a,b", "%F0%9F%98%80", "1&x=2"});
    separator = '&';
  }
  return target;
}

void mangle(Random& random, std::string& bytes) {
  for (std::uint64_t left = random.next() % 4; left > 0 && !bytes.empty(); --left) {
    const std::size_t at = random.next() % bytes.size();
    switch (random.next() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random.next());
        break;
      case 1:
        bytes.erase(at, 1 + random.next() % 8);
        break;
      case 2:
        bytes.insert(at,
                     one_of(random, {"\r\n", "\r\n\r\n", " ", std::string(1, '\0'), "%", "\"",
                                     "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"}));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(at, bytes.substr(0, std::min<std::size_t>(bytes.size(), 300)));
        break;
      case 5:
        bytes.insert(at, std::string(random.next() % 20000, 'A'));
        break;
    }
  }
}

TEST_CASE("thousands of mangled requests: never a 5xx, and the server lives", "[daemon_api]") {
  constexpr std::uint64_t kSeed = 20260222;
  constexpr int kRequests = 4000;
  INFO("seed " << kSeed);
  const Endpoints all = echoing_endpoints();
  Endpoints endpoints;
  for (const Endpoint& endpoint : all.all()) {
    if (endpoint.path != "/v1/throws") endpoints.add(endpoint);
  }
  daemon::ApiSettings settings;
  settings.idle_ms = 2000;
  Served served(settings, endpoints);
  REQUIRE(served.wrong.empty());
  std::vector<Endpoint> asked = endpoints.all();
  for (Endpoint& own : daemon::own_endpoints()) asked.push_back(own);
  Random random(kSeed);
  std::map<unsigned, int> statuses;
  std::size_t pages = 0;
  for (int i = 0; i < kRequests; ++i) {
    if (i == kRequests / 4) pages = resident_pages();
    const Endpoint& endpoint = asked[static_cast<std::size_t>(i) % asked.size()];
    const std::string target = target_for(random, endpoint);
    const std::string body = random.next() % 4 == 0 ? "" : body_for(random, endpoint);
    std::string bytes =
        body.empty() ? get(target, endpoint.method) : with_body(endpoint.method, target, body);
    if (endpoint.path == daemon::kEventsPath) bytes += "x";
    if (i % 4 != 0) mangle(random, bytes);
    const std::string reply = served.run(converse(served.path, bytes));
    const unsigned status = status_of_reply(reply);
    ++statuses[status];
    if (status >= 500 || (status == 0 && !reply.empty())) {
      std::fprintf(stderr, "request %d:\n%s\nreply:\n%s\n", i, bytes.c_str(), reply.c_str());
      FAIL("request " << i << " of seed " << kSeed << " was answered with " << status);
    }
  }
  // Every way out was taken: answered, refused for what is in it, and not understood at all.
  for (const unsigned status : {200U, 400U, 404U, 405U, 431U}) CHECK(statuses[status] > 0);
  CHECK(served.server->counts().failed == 0);
  CHECK(served.server->connections() <= 1);
  CHECK(served.hub.listeners() == 0);
  CHECK(status_of_reply(served.run(converse(served.path, get("/v1/nics")))) == 200);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  pages = resident_pages();
#endif
#endif
  CHECK(resident_pages() <= pages + 4096);  // 16 MiB over the last three quarters
#endif
}

}  // namespace
}  // namespace paceline::test
