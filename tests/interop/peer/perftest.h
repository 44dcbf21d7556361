// The other end of perftest's ib_write_bw and ib_read_bw (version 4.5, one RC queue pair): both tell
// each other over TCP what they are and where their memory is, meet again before and after the
// traffic, and compare figures.
#pragma once

#include <cstdint>
#include <string>

#include "tests/interop/peer/backend.h"

namespace paceline::interop {

struct PerftestOptions {
  std::string connect;  // the server's IPv4 address for TCP; empty: be the server
  bool read = false;    // ib_read_bw
  std::uint16_t port = 18515;
  std::uint64_t bytes = 65536;
  std::uint64_t iterations = 100;
  std::uint32_t mtu = 1024;
};

// The client moves iterations * bytes, into or out of the server's memory. Returns what we moved
// ourselves: that, or 0 as the server. Throws std::runtime_error when the other end says what it
// should not, or nothing.
std::uint64_t perftest(Backend& backend, const PerftestOptions& options);

}  // namespace paceline::interop
