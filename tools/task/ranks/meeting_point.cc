#include "tools/task/ranks/meeting_point.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "dataplane/base/text/printable.h"
#include "tools/task/ranks/rank_proof.h"

namespace paceline::tools {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

// Empty where `hex` is not even, or has another digit.
std::string bytes_of_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const std::size_t high = kHexDigits.find(hex[i]);
    const std::size_t low = kHexDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return {};
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return hex.size() % 2 == 0 ? out : std::string();
}

// The length of the filled address; 0: the text is not an address.
socklen_t fill(const std::string& address, std::uint16_t port, sockaddr_storage& out) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return sizeof v4;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return 0;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  return sizeof v6;
}

// Empty for what others cannot use.
std::string text_of_address(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return {};
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

attach::Descriptor listening_socket(int family) {
  attach::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  const int off = 0;
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    socket.reset();
  }
  return socket;
}

}  // namespace

std::string MeetingPoint::to_text() const {
  std::string out = fmt::format("{}\n{}\n", port, hex_of(token));
  for (const std::string& address : addresses) {
    if (out.size() + address.size() + 1 > kMostText) break;
    out += address + "\n";
  }
  return out;
}

config::Read<MeetingPoint> parse_meeting_point(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  config::Read<MeetingPoint> out;
  bool good = text.empty() && lines.size() > 2;
  if (good) {
    const std::string_view port = lines[0];
    const auto read = std::from_chars(port.data(), port.data() + port.size(), out.value.port);
    good = read.ec == std::errc() && read.ptr == port.data() + port.size();
    out.value.token = bytes_of_hex(lines[1]);
    good = good && out.value.port != 0 && out.value.token.size() == kTokenBytes;
  }
  for (std::size_t i = 2; good && i < lines.size(); ++i) {
    sockaddr_storage ignored{};
    out.value.addresses.emplace_back(lines[i]);
    good = fill(out.value.addresses.back(), out.value.port, ignored) != 0;
  }
  if (!good) {
    out.value = {};
    out.errors = {
        "what MPI brought from rank 0 is not where it listens: is the first rank the same "
        "program?"};
  }
  return out;
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  std::vector<std::string> addresses;
  std::vector<std::string> loopback;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    std::string text = text_of_address(at->ifa_addr);
    if (text.empty() || (at->ifa_flags & IFF_UP) == 0) continue;
    const bool local = (at->ifa_flags & IFF_LOOPBACK) != 0;
    (local ? loopback : addresses).push_back(std::move(text));
  }
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

attach::Descriptor listen_on_all(std::uint16_t& port) {
  attach::Descriptor socket = listening_socket(AF_INET6);
  if (!socket) socket = listening_socket(AF_INET);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (!socket || ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    throw std::runtime_error(fmt::format("rank 0 cannot listen: {}", std::strerror(errno)));
  }
  // The port is at the same place in both.
  port = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return socket;
}

config::Read<attach::Descriptor> connect_to(const std::string& address, std::uint16_t port,
                                            double seconds) {
  config::Read<attach::Descriptor> out;
  sockaddr_storage to{};
  const socklen_t length = fill(address, port, to);
  int problem = length == 0 ? EINVAL : 0;
  if (problem == 0) {
    out.value.reset(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!out.value ||
        ::connect(out.value.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0) {
      problem = errno;
    }
  }
  if (problem == EINPROGRESS) {
    pollfd wait{out.value.get(), POLLOUT, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(seconds * 1000));
    socklen_t size = sizeof problem;
    if (ready == 0) problem = ETIMEDOUT;
    if (ready < 0) problem = errno;
    if (ready > 0) ::getsockopt(out.value.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  }
  if (problem == 0) return out;
  out.value.reset();
  out.errors = {fmt::format("{} port {}: {}", printable(address), port, std::strerror(problem))};
  return out;
}

}  // namespace paceline::tools
