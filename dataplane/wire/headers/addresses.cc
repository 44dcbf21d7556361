#include "dataplane/wire/headers/addresses.h"

#include <arpa/inet.h>

#include <cstdio>
#include <vector>

namespace paceline::wire {
namespace {

// -1 if c is not a hexadecimal digit.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string quoted(std::string_view text) {
  std::string q(1, '\'');
  q.append(text);
  q.push_back('\'');
  return q;
}

// What is wrong, or empty. Writes four bytes.
std::string read_v4(std::string_view text, std::byte* out) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) {
    return "has " + std::to_string(parts.size()) + " parts; an IPv4 address has 4, as in 10.0.0.1";
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string_view part = parts[i];
    const std::string which = "part " + std::to_string(i + 1) + " is " + quoted(part);
    const bool digits = part.find_first_not_of("0123456789") == std::string_view::npos;
    if (part.empty() || !digits) return which + "; expected a number 0..255";
    if (part.size() > 1 && part[0] == '0') return which + "; leading zeros are not allowed";
    unsigned value = 0;
    for (const char c : part.substr(0, 4)) value = value * 10 + static_cast<unsigned>(c - '0');
    if (part.size() > 3 || value > 255) return which + "; expected a number 0..255";
    out[i] = static_cast<std::byte>(value);
  }
  return {};
}

// Groups of four hex digits with colons between, the last two possibly as a dotted quad; no "::".
// Appends to `out`; what is wrong, or empty.
std::string read_groups(std::string_view text, bool quad_allowed, std::vector<std::byte>& out) {
  if (text.empty()) return {};
  const auto parts = split(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.find('.') != std::string_view::npos) {
      if (!quad_allowed || i + 1 != parts.size()) return "a dotted quad may only come last";
      std::byte quad[4];
      if (std::string wrong = read_v4(part, quad); !wrong.empty()) return wrong;
      out.insert(out.end(), quad, quad + 4);
      continue;
    }
    if (part.empty() || part.size() > 4) {
      return "group " + quoted(part) + " has " + std::to_string(part.size()) +
             " digits; expected 1 to 4 hexadecimal digits";
    }
    unsigned value = 0;
    for (const char c : part) {
      const int digit = hex_digit(c);
      if (digit < 0) return "group " + quoted(part) + "; expected 1 to 4 hexadecimal digits";
      value = value * 16 + static_cast<unsigned>(digit);
    }
    out.push_back(static_cast<std::byte>(value >> 8));
    out.push_back(static_cast<std::byte>(value & 0xFF));
  }
  return {};
}

std::string read_v6(std::string_view text, IpAddress& out) {
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  if (has_gap && text.find("::", gap + 1) != std::string_view::npos) {
    return "has more than one '::'";
  }
  std::vector<std::byte> head;
  std::vector<std::byte> tail;
  const std::string_view before = has_gap ? text.substr(0, gap) : text;
  if (std::string wrong = read_groups(before, !has_gap, head); !wrong.empty()) return wrong;
  if (has_gap) {
    if (std::string wrong = read_groups(text.substr(gap + 2), true, tail); !wrong.empty()) {
      return wrong;
    }
  }
  const std::size_t bytes = head.size() + tail.size();
  if (has_gap ? bytes > 14 : bytes != 16) {
    return "holds " + std::to_string(bytes / 2) +
           " groups; an IPv6 address has 8, or fewer and '::'";
  }
  out = IpAddress{};
  std::copy(head.begin(), head.end(), out.bytes.begin());
  std::copy(tail.begin(), tail.end(), out.bytes.end() - static_cast<std::ptrdiff_t>(tail.size()));
  return {};
}

void report(std::string* error, std::string_view what, std::string_view text,
            const std::string& wrong) {
  if (error != nullptr) *error = std::string(what) + " " + quoted(text) + ": " + wrong;
}

}  // namespace

std::optional<IpAddress> ip_address_from_text(std::string_view text, std::string* error) {
  IpAddress address;
  std::string wrong;
  if (text.find(':') != std::string_view::npos) {
    wrong = read_v6(text, address);
  } else {
    address = IpAddress::v4(0);
    wrong = read_v4(text, address.bytes.data() + 12);
  }
  if (wrong.empty()) return address;
  report(error, "IP address", text, wrong);
  return std::nullopt;
}

std::optional<MacAddress> mac_address_from_text(std::string_view text, std::string* error) {
  MacAddress mac;
  const auto parts = split(text, ':');
  if (parts.size() != 6) {
    report(error, "MAC address", text,
           "has " + std::to_string(parts.size()) + " parts; expected 6, as in 02:00:0a:00:00:01");
    return std::nullopt;
  }
  for (std::size_t i = 0; i < 6; ++i) {
    const std::string_view part = parts[i];
    const int high = part.size() == 2 ? hex_digit(part[0]) : -1;
    const int low = part.size() == 2 ? hex_digit(part[1]) : -1;
    if (high < 0 || low < 0) {
      report(error, "MAC address", text,
             "part " + std::to_string(i + 1) + " is " + quoted(part) +
                 "; expected two hexadecimal digits");
      return std::nullopt;
    }
    mac.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return mac;
}

std::string to_text(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN];
  const bool v4 = address.is_v4();
  const std::byte* bytes = address.bytes.data() + (v4 ? 12 : 0);
  return inet_ntop(v4 ? AF_INET : AF_INET6, bytes, text, sizeof text);
}

std::string to_text(const MacAddress& address) {
  char text[18];
  const auto byte = [&address](std::size_t i) { return static_cast<unsigned>(address.bytes[i]); };
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", byte(0), byte(1), byte(2),
                byte(3), byte(4), byte(5));
  return text;
}

}  // namespace paceline::wire
