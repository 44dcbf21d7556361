#include "tests/interop/peer/side_channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace paceline::interop {

namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kNoInput = -1;

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("side channel: ") + what);
}

bool ready(int socket, short events) {
  pollfd entry{socket, events, 0};
  return poll(&entry, 1, 0) > 0;
}

// An address in its 16 bytes: IPv4 is mapped into IPv6, as in a GID.
in6_addr raw_from(const std::string& ip) {
  in6_addr raw{};
  if (ip.find(':') != std::string::npos) {
    require(inet_pton(AF_INET6, ip.c_str(), &raw) == 1, "no address");
    return raw;
  }
  raw.s6_addr[10] = raw.s6_addr[11] = 0xFF;
  require(inet_pton(AF_INET, ip.c_str(), raw.s6_addr + 12) == 1, "no address");
  return raw;
}

std::string text_from(const in6_addr& raw) {
  std::array<char, INET6_ADDRSTRLEN> text;
  const bool v4 = IN6_IS_ADDR_V4MAPPED(&raw);
  const void* const bytes = v4 ? raw.s6_addr + 12 : raw.s6_addr;
  return inet_ntop(v4 ? AF_INET : AF_INET6, bytes, text.data(), text.size());
}

std::uint32_t hex(std::string_view digits) {
  std::uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, 16);
  require(error == std::errc{} && stopped == end, "not a hexadecimal number");
  return value;
}

}  // namespace

std::string pingpong_words(const Remote& end) {
  std::array<char, kPingpongBytes> words;
  const int head =
      std::snprintf(words.data(), words.size(), "%04x:%06x:%06x:", 0U, end.number, end.first_psn);
  std::size_t at = static_cast<std::size_t>(head);
  for (const std::uint8_t byte : raw_from(end.ip).s6_addr) {
    std::snprintf(words.data() + at, words.size() - at, "%02x", static_cast<unsigned>(byte));
    at += 2;
  }
  return {words.data(), words.size()};
}

Remote remote_from_pingpong(std::string_view words) {
  require(words.size() == kPingpongBytes && words[4] == ':' && words[11] == ':' &&
              words[18] == ':' && words.back() == '\0',
          "these are not the words of ibv_rc_pingpong");
  Remote end;
  hex(words.substr(0, 4));
  end.number = hex(words.substr(5, 6));
  end.first_psn = hex(words.substr(12, 6));
  in6_addr raw{};
  for (std::size_t i = 0; i < sizeof raw.s6_addr; ++i) {
    raw.s6_addr[i] = static_cast<std::uint8_t>(hex(words.substr(19 + 2 * i, 2)));
  }
  end.ip = text_from(raw);
  return end;
}

SideChannel SideChannel::to(const std::string& ip, std::uint16_t port, Turn turn) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  require(inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1, "no IPv4 address");
  for (const auto end = Steady::now() + kPatience;;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    require(socket >= 0, "no socket");
    SideChannel channel(socket, turn);
    // The kernel of the other end answers at once; only then does reading go on beside the engine.
    const int status = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (status == 0) {
      require(fcntl(socket, F_SETFL, O_NONBLOCK) == 0, "fcntl");
      return channel;
    }
    require(errno == ECONNREFUSED && Steady::now() < end, "nobody listens");
    for (int i = 0; i < 50; ++i) turn(kNoInput);
  }
}

SideChannel SideChannel::from(std::uint16_t port, Turn turn) {
  SideChannel listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), turn);
  const int on = 1;
  setsockopt(listener.socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  require(
      bind(listener.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
          listen(listener.socket_, 1) == 0,
      "cannot listen");
  for (const auto end = Steady::now() + kPatience; !ready(listener.socket_, POLLIN);) {
    require(Steady::now() < end, "nobody came");
    turn(listener.socket_);
  }
  const int socket = accept4(listener.socket_, nullptr, nullptr, SOCK_NONBLOCK);
  require(socket >= 0, "accept");
  return {socket, std::move(turn)};
}

SideChannel::SideChannel(SideChannel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), turn_(std::move(other.turn_)) {}

SideChannel::~SideChannel() {
  if (socket_ >= 0) close(socket_);
}

void SideChannel::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else {
      require(n < 0 && errno == EAGAIN, "the other end is gone");
      turn_(kNoInput);
    }
  }
}

std::string SideChannel::read(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  auto end = Steady::now() + kPatience;
  while (have < bytes) {
    const ssize_t n = recv(socket_, text.data() + have, bytes - have, 0);
    if (n > 0) {
      have += static_cast<std::size_t>(n);
      end = Steady::now() + kPatience;
      continue;
    }
    require(n < 0 && errno == EAGAIN, "the other end is gone");
    require(Steady::now() < end, "the other end says nothing");
    turn_(socket_);
  }
  return text;
}

}  // namespace paceline::interop
