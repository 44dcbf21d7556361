// Seeded random numbers, the same on every compiler and machine: xoshiro256++ (Blackman and Vigna,
// "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47(4), 2021), its state filled by
// splitmix64 (Steele, Lea and Flood, OOPSLA 2014) as its authors advise.
//
// A generator belongs to one owner (a workload source, an egress port) and is never shared between
// threads. Owners take the run's seed and a stream number of their own, so that adding an owner
// does not change what the others draw. The stream is part of every published result: a change of
// the pinned values in random_test.cc is a change of results.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

namespace paceline {

// The finaliser of splitmix64: a bijection of 64-bit values in which every input bit reaches every
// output bit. Also good for deriving seeds from indices.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9U;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBU;
  return x ^ (x >> 31);
}

// One step of splitmix64: advances `state` and returns a value.
constexpr std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9E37'79B9'7F4A'7C15U;
  return mix64(state);
}

class Random {
 public:
  using State = std::array<std::uint64_t, 4>;

  // Different (seed, stream) give unrelated sequences: for a fixed seed no two streams, and for a
  // fixed stream no two seeds, start from the same state.
  constexpr explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t fill = seed;
    fill = splitmix64(fill) ^ mix64(stream);
    for (std::uint64_t& word : state_) word = splitmix64(fill);
  }

  // Continues from a saved state, which must not be all zero.
  static constexpr Random from_state(const State& state) {
    Random random(0);
    random.state_ = state;
    return random;
  }
  constexpr const State& state() const { return state_; }

  // 64 uniformly distributed bits.
  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // A multiple of 2^-53 in [0, 1), every one equally likely.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // An integer in [0, n), exactly uniform; n must not be 0. Multiply and reject (Lemire, "Fast
  // Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019): the division runs with
  // probability n / 2^64 only. The number of draws depends on the values, never on anything else.
  constexpr std::uint64_t below(std::uint64_t n) {
    assert(n != 0);
    __extension__ using Wide = unsigned __int128;
    Wide product = Wide{next()} * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;  // 2^64 mod n
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next()} * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  friend constexpr bool operator==(const Random&, const Random&) = default;

 private:
  State state_{};
};

static_assert(sizeof(Random) == 32);

}  // namespace paceline
