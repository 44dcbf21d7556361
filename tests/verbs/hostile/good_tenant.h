// The neighbour of the hostile program: two sessions on two NICs, whose every byte is checked, with
// guard zones before and behind all that it has registered. One of the two ends is reached by copy,
// the other through shared memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "tests/verbs/hostile/raw_end.h"

namespace paceline::test {

// What a hostile program may know of its neighbour: all but where its packets are in sequence,
// which is the only secret that the RoCE wire has (any program on a host may send packets to a
// queue pair as from that host).
struct KnownToAll {
  std::uint32_t qp_numbers[2] = {};
  std::uint32_t keys[2] = {};
  std::uint64_t addresses[2] = {};
};

class GoodTenant {
 public:
  GoodTenant(const std::string& socket, std::uint64_t seed);
  ~GoodTenant();
  GoodTenant(const GoodTenant&) = delete;
  GoodTenant& operator=(const GoodTenant&) = delete;

  bool start();
  KnownToAll known() const;
  // One SEND, WRITE or READ in either direction. False: `wrong()` says why.
  bool round();
  const std::string& wrong() const { return wrong_; }
  std::uint64_t rounds() const { return rounds_; }

  static constexpr std::size_t kBytes = 64U << 10U;
  static constexpr std::size_t kGuard = 16U << 10U;

 private:
  struct Side {
    explicit Side(const std::string& socket) : end(socket) {}
    RawEnd end;
    std::byte* mapped = nullptr;  // guard, kBytes, guard
    std::span<std::byte> data() const { return {mapped + kGuard, kBytes}; }
    std::uint32_t key = 0;
  };

  bool register_by_copy(Side& side);
  bool register_shared(Side& side);
  bool guards_hold(const Side& side);
  bool complete(Side& side, attach::EntryOpcode opcode, std::uint64_t wr_id);
  bool fail(std::string why);

  Random random_;
  Side sides_[2];
  std::uint64_t rounds_ = 0;
  std::string wrong_;
};

}  // namespace paceline::test
