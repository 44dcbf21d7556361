// What a rank needs from the network: writes into the staging memory of others, each with a word
// that tells the other rank of its arrival.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace paceline::rank {

// What another rank must know to reach the staging memory of this one.
struct LinkAddress {
  std::uint32_t rank = 0;
  std::string gid;  // 32 hexadecimal digits
  std::uint64_t staging = 0;
  std::uint32_t key = 0;
  std::uint32_t queue_pair = 0;  // the one for the reader of this address
  std::uint64_t channel = 0;
};

// Where a message goes: a pair of ranks has a connection for each of its channels, whose messages
// arrive in order. Both ranks give a channel the same number.
struct LinkRoute {
  std::uint32_t peer = 0;
  std::uint64_t channel = 0;
};

struct LinkEvent {
  bool arrived = false;  // from the peer; else what went to the peer is acknowledged
  std::uint32_t peer = 0;
  std::uint32_t word = 0;
  std::uint32_t bytes = 0;  // of an arrival
};

using LinkTime = std::chrono::steady_clock::time_point;

enum class LinkWake : std::uint8_t {
  any,
  arrival,  // acknowledgements come with the next arrival
};

class RankLink {
 public:
  virtual ~RankLink() = default;

  // The rank's own staging memory.
  virtual std::byte* staging() = 0;
  // Writes bytes of the own staging memory to the peer's. They must not change until they are in
  // the peer's memory; the arrival there and the acknowledgement tell of that.
  virtual void write(const LinkRoute& to, std::uint64_t own_offset, std::uint64_t peer_offset,
                     std::uint64_t bytes, std::uint32_t word) = 0;
  // Sends only a word.
  virtual void tell(const LinkRoute& to, std::uint32_t word) = 0;
  // Replaces `events` by what has happened since. If nothing has, sleeps until `wake` or `until`.
  // Throws RankError.
  virtual void wait(std::vector<LinkEvent>& events, LinkWake wake, LinkTime until) = 0;
};

}  // namespace paceline::rank
