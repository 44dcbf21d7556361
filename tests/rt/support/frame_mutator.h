// Frames that nobody should send: golden captures and what a host says, readdressed to a victim and
// damaged. Seeded: the same frames for the same seed.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/protocol/psn.h"
#include "dataplane/wire/headers/addresses.h"
#include "tests/wire/pcap.h"

namespace paceline::test {

// Whom the frames are for, and from whom they pretend to be.
struct StormTarget {
  wire::MacAddress mac;
  wire::IpAddress v4;
  wire::IpAddress v6;
  wire::MacAddress from_mac;
  wire::IpAddress from_v4;
  wire::IpAddress from_v6;
  // A queue pair of the victim's that is connected to from_v4, when there is one; its next number,
  // and a region that it may be asked about.
  std::uint32_t qpn = 0;
  Psn expected;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
};

class FrameMutator {
 public:
  // Reads tests/wire/golden.
  explicit FrameMutator(std::uint64_t seed);

  // The next one, at most `most` bytes long. `attack`: to the target's queue pair, with right
  // numbers as often as not.
  Frame next(const StormTarget& target, bool attack, std::size_t most);
  std::size_t seeds() const { return seeds_.size(); }

 private:
  struct Seed {
    Frame frame;
    std::size_t l3 = 0;   // 0: not RoCEv2
    std::size_t bth = 0;  // 0: not RoCEv2
    bool ipv6 = false;
  };
  void add_roce(Frame frame);
  void add_control();
  void add_host();
  void readdress(Frame& frame, const Seed& seed, const StormTarget& target, bool attack);
  void damage(Frame& frame, const Frame& other);
  void repair(Frame& frame, const Seed& seed);

  Random random_;
  std::vector<Seed> seeds_;
};

}  // namespace paceline::test
