// A service that listens but accepts nobody: it is stopped, or stuck.
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "dataplane/attach/message_socket.h"

namespace paceline::attach {
namespace {

// In the abstract namespace, so that nothing is left of it.
std::string socket_name() { return "@paceline-connect-test-" + std::to_string(::getpid()); }

// Connections until no more may wait.
std::vector<Descriptor> filled(const std::string& name) {
  std::vector<Descriptor> waiting;
  for (;;) {
    Descriptor next = connect_socket(name, kNoPatience);
    if (!next) break;
    waiting.push_back(std::move(next));
  }
  const int error = errno;
  CHECK(error == ETIMEDOUT);
  return waiting;
}

TEST_CASE("connecting to who accepts nobody ends in time", "[connect]") {
  const std::string name = socket_name();
  const Descriptor listener = listen_socket(name, 0600);
  REQUIRE(listener);
  const std::vector<Descriptor> waiting = filled(name);
  CHECK(waiting.size() > 0);
  CHECK_FALSE(connect_socket(name, timeval{0, 10'000}));
  CHECK(errno == ETIMEDOUT);
  // With room again it is let in, and what it sends waits for room without a limit, as always.
  REQUIRE(Descriptor(::accept(listener.get(), nullptr, nullptr)));
  const Descriptor let_in = connect_socket(name, kNoPatience);
  REQUIRE(let_in);
  timeval limit{1, 1};
  socklen_t length = sizeof(limit);
  REQUIRE(::getsockopt(let_in.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, &length) == 0);
  CHECK(limit.tv_sec == 0);
  CHECK(limit.tv_usec == 0);
}

TEST_CASE("the place of who accepts nobody is taken", "[connect]") {
  const std::string path = "/tmp/paceline-connect-test-" + std::to_string(::getpid());
  {
    const Descriptor listener = listen_socket(path, 0600);
    REQUIRE(listener);
    const std::vector<Descriptor> waiting = filled(path);
    CHECK_FALSE(listen_socket(path, 0600));
    CHECK(errno == EADDRINUSE);
  }
  CHECK(listen_socket(path, 0600));  // nobody listens any more
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace paceline::attach
