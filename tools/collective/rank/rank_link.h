// What a rank needs of the network: writes into the staging memory of others, each with a word that
// tells the other that it has arrived.
#pragma once

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
};

struct LinkEvent {
  bool arrived = false;  // from the peer; else what went to the peer is acknowledged
  std::uint32_t peer = 0;
  std::uint32_t word = 0;
};

enum class LinkWake : std::uint8_t {
  any,
  arrival,  // acknowledgements come with the next arrival
};

class RankLink {
 public:
  virtual ~RankLink() = default;

  // The own staging memory.
  virtual std::byte* staging() = 0;
  // Bytes of the own staging memory to the peer's. They stay as they are until it is acknowledged.
  virtual void write(std::uint32_t peer, std::uint64_t own_offset, std::uint64_t peer_offset,
                     std::uint64_t bytes, std::uint32_t word) = 0;
  // A word alone.
  virtual void tell(std::uint32_t peer, std::uint32_t word) = 0;
  // Replaces `events` by what has happened since. Sleeps until `wake` where nothing has. Throws
  // RankError.
  virtual void wait(std::vector<LinkEvent>& events, LinkWake wake) = 0;
};

}  // namespace paceline::rank
