// The NVLink of all servers: messages between NICs of a server, one GPU each, use it instead of the
// fabric. A GPU sends one message after the other, in the order in which it is told to. The switch
// inside a server never blocks, and a receiver takes whatever comes.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline {

// The link of one GPU, one direction.
struct NvLinkSpec {
  Rate rate{};
  Picos latency{};

  // From the first byte sent to the last byte received.
  Picos transfer(std::uint64_t bytes) const { return serialization_time(bytes, rate) + latency; }
};

class NvLink {
 public:
  NvLink(const NvLinkSpec& spec, std::uint32_t gpus) : spec_(spec), senders_(gpus) {}

  // As if nothing had been sent.
  void reset() { senders_.assign(senders_.size(), {}); }

  // Queues a message at GPU `from`, for which time does not go back. Returns when it has arrived.
  Picos send(Picos now, std::uint32_t from, std::uint64_t bytes);

  std::uint64_t bytes_sent(std::uint32_t gpu) const { return senders_[gpu].bytes; }

 private:
  struct Sender {
    Picos free_at{0};
    std::uint64_t bytes = 0;
  };

  NvLinkSpec spec_;
  std::vector<Sender> senders_;
};

}  // namespace paceline
