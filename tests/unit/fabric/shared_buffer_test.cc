#include "dataplane/fabric/switching/shared_buffer.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "dataplane/base/numbers/random.h"

namespace paceline::fabric {
namespace {

using Place = SharedBuffer::Place;
constexpr std::uint8_t kLossless = 1U << 3;
constexpr std::uint32_t kQuarter = 65536 / 4;

// Two ports; capacity to share: 100,000 - 2 x (5,000 + 1,000) = 88,000; alpha 1/4.
SharedBuffer two_ports() {
  return {100'000, {{5'000, kQuarter}, {5'000, kQuarter}}, kLossless, 1'000, 500};
}

TEST_CASE("shared buffer sets reserves and headrooms aside") {
  CHECK(two_ports().capacity() == 88'000);
  CHECK(two_ports().threshold(0) == 22'000);
  // One lossless class only: the others have neither.
  SharedBuffer three(100'000, {{5'000, kQuarter}}, 0b1110, 1'000, 500);
  CHECK(three.capacity() == 100'000 - 3 * 6'000);
  CHECK_THROWS_AS(SharedBuffer(12'000, {{5'000, kQuarter}, {5'000, kQuarter}}, kLossless, 1'000, 0),
                  std::invalid_argument);
}

TEST_CASE("a lossless packet uses reserve, then shared buffer, then headroom, then nothing") {
  SharedBuffer buffer = two_ports();
  buffer.charge(0, 3, 1'000, buffer.place_lossless(0, 3, 1'000));
  CHECK(buffer.shared_used() == 0);
  CHECK(buffer.used() == 1'000);

  // Beyond the reserve; the part above it is shared. threshold = (88000 - s) / 4 >= s + 1000 while
  // s <= 16,800.
  std::uint32_t shared = 0;
  while (buffer.place_lossless(0, 3, 1'000) == Place::buffer) {
    buffer.charge(0, 3, 1'000, Place::buffer);
    shared += 1'000;
  }
  CHECK(shared == 17'000);
  CHECK(buffer.shared_used() == 17'000);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(buffer.place_lossless(0, 3, 1'000) == Place::headroom);
    buffer.charge(0, 3, 1'000, Place::headroom);
  }
  CHECK(buffer.place_lossless(0, 3, 1'000) == Place::none);
  // The other port still has its reserve and a lower threshold.
  CHECK(buffer.place_lossless(1, 3, 1'000) == Place::buffer);
  CHECK(buffer.threshold(1) == (88'000 - 17'000) / 4);
}

TEST_CASE("a reserve is there even when the shared part is full") {
  SharedBuffer buffer(20'000, {{1'000, 64U << 16}, {1'000, 64U << 16}}, kLossless, 1'000, 0);
  while (buffer.place_lossless(0, 3, 500) == Place::buffer) buffer.charge(0, 3, 500, Place::buffer);
  CHECK(buffer.capacity() - buffer.shared_used() < 500);
  CHECK(buffer.place_lossless(1, 3, 1'000) == Place::buffer);
}

TEST_CASE("headroom is released first, and the shared part before the reserve") {
  SharedBuffer buffer = two_ports();
  buffer.charge(0, 3, 3'000, Place::buffer);
  buffer.charge(0, 3, 2'000, Place::headroom);
  CHECK(buffer.shared_used() == 2'000);
  buffer.release(0, 3, 2'500);
  CHECK(buffer.at(0, 3).headroom == 0);
  CHECK(buffer.at(0, 3).bytes == 2'500);
  CHECK(buffer.shared_used() == 1'500);
  buffer.release(0, 3, 2'500);
  CHECK(buffer.shared_used() == 0);
  CHECK(buffer.used() == 0);
}

TEST_CASE(
    "pause at the threshold or in headroom; resume an offset below it and with empty headroom") {
  SharedBuffer buffer = two_ports();
  CHECK_FALSE(buffer.must_pause(0, 3));
  buffer.charge(0, 3, 18'599, Place::buffer);  // shared 17,599; threshold 17,600
  CHECK(buffer.threshold(0) == 17'600);
  CHECK_FALSE(buffer.must_pause(0, 3));
  buffer.charge(0, 3, 1, Place::buffer);  // 17,600 against 17,600
  CHECK(buffer.must_pause(0, 3));
  CHECK_FALSE(buffer.may_resume(0, 3));
  // s + 500 <= (88000 - s) / 4, so s <= 17,200.
  buffer.release(0, 3, 399);
  CHECK_FALSE(buffer.may_resume(0, 3));
  buffer.release(0, 3, 1);
  CHECK(buffer.may_resume(0, 3));
  buffer.charge(0, 3, 64, Place::headroom);
  CHECK(buffer.must_pause(0, 3));
  CHECK_FALSE(buffer.may_resume(0, 3));
}

TEST_CASE("an ingress whose shared part is empty may resume whatever the threshold is") {
  SharedBuffer buffer(20'000, {{1'000, 1U << 16}, {1'000, 1U << 16}}, kLossless, 1'000, 5'000);
  buffer.charge(0, 0, 15'000, Place::buffer);
  CHECK(buffer.threshold(1) < 5'000);
  CHECK(buffer.may_resume(1, 3));
}

TEST_CASE("a lossy packet is held against alpha times what is free, by its egress queue") {
  SharedBuffer buffer = two_ports();
  CHECK(buffer.admits_lossy(1, 1'000, 21'000));
  CHECK_FALSE(buffer.admits_lossy(1, 1'000, 21'001));
  buffer.charge(0, 0, 40'000, Place::buffer);  // no reserve: all of it is shared
  CHECK(buffer.shared_used() == 40'000);
  CHECK(buffer.admits_lossy(1, 1'000, 11'000));
  CHECK_FALSE(buffer.admits_lossy(1, 1'000, 11'001));
}

// The argument for lazy departures rests on this: releasing bytes never turns a "no" into a "yes".
TEST_CASE("conditions that pause or drop are monotone in the bytes held") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto alpha = static_cast<std::uint32_t>(1 + random.below(4U << 16));
    SharedBuffer buffer(60'000 + random.below(100'000), {{9'000, alpha}, {9'000, alpha}}, kLossless,
                        static_cast<std::uint32_t>(random.below(5'000)),
                        static_cast<std::uint32_t>(random.below(5'000)));
    struct Held {
      std::uint16_t port;
      std::uint8_t traffic_class;
      std::uint32_t size;
    };
    std::vector<Held> held;
    for (int i = 0; i < 200; ++i) {
      const Held h{static_cast<std::uint16_t>(random.below(2)),
                   static_cast<std::uint8_t>(random.below(2) == 0 ? 3 : 1),
                   static_cast<std::uint32_t>(64 + random.below(4'000))};
      if (h.traffic_class == 3) {
        const Place place = buffer.place_lossless(h.port, 3, h.size);
        if (place == Place::none) continue;
        buffer.charge(h.port, 3, h.size, place);
      } else {
        if (!buffer.admits_lossy(h.port, h.size, 0)) continue;
        buffer.charge(h.port, 1, h.size, Place::buffer);
      }
      held.push_back(h);
    }
    const auto size = static_cast<std::uint32_t>(64 + random.below(4'000));
    while (!held.empty()) {
      const bool pause = buffer.must_pause(0, 3);
      const Place place = buffer.place_lossless(0, 3, size);
      const bool lossy = buffer.admits_lossy(0, size, 3'000);
      const std::size_t i = random.below(held.size());
      buffer.release(held[i].port, held[i].traffic_class, held[i].size);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      if (!pause) REQUIRE_FALSE(buffer.must_pause(0, 3));
      REQUIRE(buffer.place_lossless(0, 3, size) <= place);
      if (lossy) REQUIRE(buffer.admits_lossy(0, size, 3'000));
    }
    CHECK(buffer.used() == 0);
    CHECK(buffer.shared_used() == 0);
  }
}

}  // namespace
}  // namespace paceline::fabric
