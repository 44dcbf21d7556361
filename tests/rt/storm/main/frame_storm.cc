// Broken frames by the million over heap copies (storm.h), a new conversation every so many.
//
//   frame_storm [--frames 10000000] [--seed 1] [--round 50000]
//
// Conversations take turns: broken frames at large, an attacked queue pair, IPv4, IPv6. The seed is
// printed first; conversation N of a seed is the same every time. exit: 0 all held, 1 not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "tests/rt/support/heap_cable.h"
#include "tests/rt/support/storm.h"

namespace paceline::test {
namespace {

int run(std::uint64_t frames, std::uint64_t seed, std::uint64_t round) {
  std::printf("seed %llu, %llu frames\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(frames));
  StormReport report;
  for (std::uint64_t n = 0; report.injected < frames; ++n) {
    FrameMutator mutator(seed * 1'000'003 + n);
    HeapPort victim(4096, 8192, 0);
    HeapPort peer(4096, 8192, 1);
    victim.join(peer);
    peer.join(victim);
    const StormConfig config{.frames = round, .attack = n % 2 != 0, .ipv6 = n % 4 >= 2};
    const std::string wrong = storm_round(victim, peer, mutator, config, report);
    if (!wrong.empty() || victim.packets().in_use() + peer.packets().in_use() != 0) {
      std::printf("conversation %llu: %s\n", static_cast<unsigned long long>(n),
                  wrong.empty() ? "packets are not back" : wrong.c_str());
      return 1;
    }
    if (n % 10 == 9) {
      std::printf("%s\n", to_text(report).c_str());
      std::fflush(stdout);
    }
  }
  std::printf("all held: %s\n", to_text(report).c_str());
  return 0;
}

}  // namespace
}  // namespace paceline::test

int main(int count, char** arguments) {
  std::uint64_t frames = 10'000'000;
  std::uint64_t seed = 1;
  std::uint64_t round = 50'000;
  for (int i = 1; i + 1 < count; i += 2) {
    std::uint64_t* const target = std::strcmp(arguments[i], "--frames") == 0  ? &frames
                                  : std::strcmp(arguments[i], "--seed") == 0  ? &seed
                                  : std::strcmp(arguments[i], "--round") == 0 ? &round
                                                                              : nullptr;
    if (target == nullptr) {
      std::fprintf(stderr, "usage: frame_storm [--frames N] [--seed N] [--round N]\n");
      return 2;
    }
    *target = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  try {
    return paceline::test::run(frames, seed, round);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "frame_storm: %s\n", error.what());
    return 1;
  }
}
