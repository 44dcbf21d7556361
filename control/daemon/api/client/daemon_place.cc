#include "control/daemon/api/client/daemon_place.h"

#include <charconv>

namespace paceline::daemon {

namespace {

constexpr std::size_t kLongestSocketPath = 107;
constexpr const char* kAllowed =
    "allowed: https://HOST:PORT, http://HOST:PORT (the near end of a tunnel) or unix:/PATH";

// Removes the beginning, if the text has it.
bool without(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

}  // namespace

std::string read_place(std::string_view url, DaemonPlace& out) {
  out.url = url;
  std::string_view rest = url;
  if (without(rest, "unix:")) {
    out.kind = DaemonPlace::Kind::local;
    out.path = rest;
    if (!rest.starts_with('/') || rest.size() > kLongestSocketPath) {
      return std::string("a socket's path begins with / and has at most 107 characters; ") +
             kAllowed;
    }
    return {};
  }
  if (without(rest, "https://")) {
    out.kind = DaemonPlace::Kind::tls;
  } else if (without(rest, "http://")) {
    out.kind = DaemonPlace::Kind::plain;
  } else {
    return kAllowed;
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return std::string("the port is missing; ") + kAllowed;
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (wrong != std::errc{} || end != port.data() + port.size() || out.port == 0) {
    return std::string("a port is a number from 1 to 65535; ") + kAllowed;
  }
  const bool brackets = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (brackets) host = host.substr(1, host.size() - 2);
  const bool fits = !host.empty() &&
                    host.find_first_of("/@?#[] \t\r\n") == std::string_view::npos &&
                    (brackets || host.find(':') == std::string_view::npos);
  if (!fits) return std::string("this is not a host; ") + kAllowed;
  out.host = host;
  return {};
}

}  // namespace paceline::daemon
