// Descriptors of strangers: not received, and closed where nobody waits.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/descriptors/foreign_descriptors.h"
#include "dataplane/attach/message_socket.h"
#include "tests/support/descriptor_message.h"

namespace paceline::attach {
namespace {

std::pair<Descriptor, Descriptor> connected(int type) {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void send_text(int socket, std::string_view text, int descriptor = -1) {
  REQUIRE(test::send_with_descriptor(socket, text, descriptor) ==
          static_cast<ssize_t>(text.size()));
}

// What is received there, "EPERM" or another errno's name.
std::string received(int socket) {
  std::array<std::byte, 100> room{};
  const ssize_t got = receive_plain(socket, room);
  if (got >= 0) return {reinterpret_cast<const char*>(room.data()), static_cast<std::size_t>(got)};
  return errno == EPERM ? "EPERM" : errno == EAGAIN ? "EAGAIN" : std::strerror(errno);
}

template <class Holds>
bool comes_true(Holds holds) {
  for (int i = 0; i < 10'000; ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

// Whether the other end has closed. What it had not read makes the kernel say so with ECONNRESET.
bool has_ended(int socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// A socket whose last close waits for its peer for a minute, and that peer.
std::pair<Descriptor, Descriptor> lingering() {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), name, length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), name, &length) == 0);
  Descriptor sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(sender.get(), name, length) == 0);
  Descriptor peer(::accept(listener.get(), nullptr, nullptr));
  const linger minute{1, 60};
  REQUIRE(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)) == 0);
  const std::vector<char> bytes(65536);
  while (::send(sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  return {std::move(sender), std::move(peer)};
}

}  // namespace

TEST_CASE("a message that descriptors come with is not taken", "[descriptors]") {
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int type = GENERATE(SOCK_STREAM, SOCK_SEQPACKET);
  const auto [from, to] = connected(type);
  const int tells_senders = GENERATE(0, 1);
  REQUIRE(::setsockopt(to.get(), SOL_SOCKET, SO_PASSCRED, &tells_senders, sizeof tells_senders) ==
          0);
  CHECK(received(to.get()) == "EAGAIN");
  send_text(from.get(), "plain");
  CHECK(received(to.get()) == "plain");
  send_text(from.get(), "first");
  CHECK(received(to.get()) == "first");
  send_text(from.get(), "second", file.get());
  CHECK(received(to.get()) == "EPERM");
  CHECK(received(to.get()) == "EPERM");  // it is still there
  std::array<std::byte, 3> head{};
  const Glance glance = look(to.get(), head);
  CHECK(glance.bytes == 3);
  CHECK(glance.descriptors);
}

TEST_CASE("what came since the glance is not taken with it", "[descriptors]") {
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto [from, to] = connected(SOCK_STREAM);
  send_text(from.get(), "plain");
  std::array<std::byte, 100> room{};
  CHECK_FALSE(look(to.get(), room).descriptors);
  send_text(from.get(), "more", file.get());
  CHECK(received(to.get()) == "EPERM");
}

TEST_CASE("the end of a connection is the end", "[descriptors]") {
  auto [from, to] = connected(GENERATE(SOCK_STREAM, SOCK_SEQPACKET));
  from.reset();
  CHECK(received(to.get()).empty());
}

TEST_CASE("whoever closes aside does not wait, and others are closed meanwhile",
          "[descriptors][threads]") {
  Aside aside;
  auto [slow, peer] = lingering();
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> slow_held = held;
  aside.close_here(std::move(slow), std::exchange(held, nullptr));
  // As would what lies unread in a socket.
  auto [from, to] = connected(SOCK_SEQPACKET);
  auto [other, other_peer] = lingering();
  send_text(from.get(), "x", other.get());
  other.reset();
  auto nested = std::make_shared<int>(0);
  const std::weak_ptr<int> nested_held = nested;
  aside.close(std::move(to), std::exchange(nested, nullptr));
  CHECK(has_ended(from.get()));  // although the close waits
  for (int i = 0; i < 100; ++i) {
    auto [a, b] = connected(SOCK_STREAM);
    aside.close(std::move(a));
    CHECK(has_ended(b.get()));
  }
  CHECK_FALSE(slow_held.expired());
  CHECK_FALSE(nested_held.expired());
  // Their owner lets them go.
  peer.reset();
  other_peer.reset();
  CHECK(comes_true([&] { return slow_held.expired() && nested_held.expired(); }));
}

TEST_CASE("the name of a listening socket is free at once, whoever waits to be let in",
          "[descriptors][threads]") {
  const std::string name = "@paceline-listening-" + std::to_string(::getpid());
  Aside aside;
  auto [slow, peer] = lingering();
  Descriptor first = listen_socket(name, 0600);
  REQUIRE(first);
  const Descriptor waiting = connect_socket(name);
  REQUIRE(waiting);
  send_text(waiting.get(), "x", slow.get());
  slow.reset();
  close_listening(std::move(first), aside);
  CHECK(listen_socket(name, 0600));
  CHECK(has_ended(waiting.get()));
}

TEST_CASE("work beyond the most threads waits for one of them", "[descriptors][threads]") {
  Aside aside(2);
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  for (int i = 0; i < 10; ++i) {
    aside.run([&] {
      while (!go) ::usleep(100);
      ++done;
    });
  }
  CHECK(done == 0);
  go = true;
  CHECK(comes_true([&] { return done == 10; }));
}

}  // namespace paceline::attach
