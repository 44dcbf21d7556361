// What ibv_rc_pingpong of rdma-core does, on any backend: SENDs to and fro between two RC queue
// pairs, one at a time, after both ends have told each other where they are over TCP.
#pragma once

#include <cstdint>
#include <string>

#include "tests/interop/peer/backend.h"

namespace paceline::interop {

struct PingpongOptions {
  std::string connect;  // the listening end's IPv4 address for TCP; empty: listen
  std::uint16_t port = 18515;
  std::uint64_t bytes = 4096;
  std::uint64_t iterations = 1000;
  std::uint32_t mtu = 1024;
  std::uint8_t fill = 0x7B;  // every byte of every message, in both directions
};

// Bytes received. Throws std::runtime_error when anything else comes than what is expected, or
// nothing for ten seconds.
std::uint64_t pingpong(Backend& backend, const PingpongOptions& options);

}  // namespace paceline::interop
