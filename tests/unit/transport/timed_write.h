// One WRITE of about 270 us at 100 Gb/s over a round trip of some 20 us: long enough for a host to
// be away in the middle.
#pragma once

#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {

inline constexpr std::uint32_t kTimedPackets = 3000;

inline LabOptions timed_write_options(Reliability reliability, cc::AlgorithmId algorithm) {
  LabOptions options = small_packets();
  options.engine.reliability = reliability;
  options.engine.primary.algorithm = algorithm;
  options.engine.fallback.algorithm = algorithm;
  options.delay = picos_from_micros(10);
  options.engine.base_rtt_ns = 20'300;
  return options;
}

// How long the WRITE takes from `pair.a` on. It must succeed, and all of it arrive.
inline Picos timed_write(Lab& lab, const Lab::Pair& pair) {
  const Picos begun = lab.now();
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kTimedPackets * kMtu)) ==
          PostResult::ok);
  lab.run(picos_from_micros(100'000));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(equal_memories(lab, kTimedPackets * kMtu));
  return sent[0].at - begun;
}

}  // namespace paceline::transport::test
