// Addresses on which rank 0 listens, and the token of the command's ranks. MPI hands both to all
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

struct MeetingPoint {
  // Most bytes of to_text(); addresses beyond that are left out.
  static constexpr std::size_t kMostText = 4096;

  std::string token;                   // kTokenBytes
  std::uint16_t port = 0;              // in the machine's byte order
  std::vector<std::string> addresses;  // IPv4 and IPv6, in the order in which to try them

  std::string to_text() const;
};

// An error if `text` is not a meeting point.
config::Read<MeetingPoint> parse_meeting_point(std::string_view text);

// Addresses of this machine's interfaces that are up, those of the loopback interface last; without
// link-local IPv6 addresses.
std::vector<std::string> own_addresses();

// A socket that listens on all addresses, at a port that the kernel chooses. Throws
// std::runtime_error if that fails.
attach::Descriptor listen_on_all(std::uint16_t& port);

// A connected socket, or an error text. Waits at most `seconds`.
config::Read<attach::Descriptor> connect_to(const std::string& address, std::uint16_t port,
                                            double seconds);

}  // namespace paceline::tools
