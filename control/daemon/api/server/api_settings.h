// How, and by whom, the API is reached.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::daemon {

// The only paths of the listener for metrics.
inline constexpr std::array<std::string_view, 2> kMetricsPaths{"/metrics", "/healthz"};

// The API on TCP needs TLS and tokens: without all four of these settings it does not listen there.
struct TcpSettings {
  std::string address = "127.0.0.1";  // IPv4 or IPv6
  std::uint16_t port = 0;             // 0: any; ApiServer::port() says which
  std::string certificate;            // PEM, the chain, the server's own first
  std::string key;                    // PEM; nobody but its owner may read it
  std::string tokens;                 // tokens.h; nobody but its owner may read it
};

struct ApiSettings {
  std::string socket;           // path of the Unix socket; empty: none, unless `descriptor`
  int descriptor = -1;          // a Unix socket that listens already (systemd); taken over
  std::string group;            // its members may write; empty: root and the own user only
  bool world_readable = false;  // any user of the machine may read
  std::optional<TcpSettings> tcp{};
  // Port of the loopback interface where any user may read kMetricsPaths; 0: any port.
  std::optional<std::uint16_t> metrics_port{};

  std::string version = "0";  // of the product, for the description

  // Limits. Anything beyond them is refused, not clamped.
  std::uint32_t most_header = 16 << 10;
  std::uint64_t most_body = 256 << 10;
  std::size_t most_target = 4 << 10;
  // A read-only caller gets a quarter of each of these two, and a quarter is reserved for callers
  // who may write (places.h).
  std::size_t most_connections = 256;
  std::size_t most_listeners = 64;       // of events, among the connections
  std::size_t most_queued_events = 256;  // of one listener; beyond, it is dropped
  std::size_t most_queued_bytes = 1 << 20;
  // The most time between a reply and the end of the next request; also for a client to take a
  // reply.
  std::uint32_t idle_ms = 60'000;
  std::uint32_t keep_alive_ms = 15'000;  // between comments to a silent listener
};

}  // namespace paceline::daemon
