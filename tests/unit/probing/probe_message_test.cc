#include "dataplane/probing/probe_message.h"

#include <catch2/catch.hpp>

namespace paceline::probing {

TEST_CASE("a probe is read as it was written") {
  ProbeMessage message;
  message.kind = ProbeKind::times;
  message.for_clock = true;
  message.path = 63;
  message.session = 0x89AB'CDEF;
  message.sequence = 0xFFFF'FFFF;
  message.received = Nanos{-5};
  message.answered = Nanos{1'800'000'000'000'000'000};
  auto bytes = write_probe(message);
  CHECK(read_probe(bytes) == message);
  bytes[40] = std::byte{1};  // of a later version
  CHECK(read_probe(bytes) == message);
}

TEST_CASE("what is no probe is refused") {
  const auto good = write_probe({});
  REQUIRE(read_probe(good));
  CHECK_FALSE(read_probe(std::span(good).first(63)));
  CHECK_FALSE(read_probe({}));
  for (const std::size_t at : {0U, 1U, 2U, 3U}) {
    auto bad = good;
    bad[at] ^= std::byte{0x40};
    CHECK_FALSE(read_probe(bad));
  }
}

}  // namespace paceline::probing
