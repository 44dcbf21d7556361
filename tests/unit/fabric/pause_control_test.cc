#include "dataplane/fabric/switching/pause_control.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::fabric {
namespace {

constexpr std::uint8_t kPausable = 0b0000'1100;  // classes 2 and 3
constexpr std::uint16_t kPausePorts = 3;

SharedBuffer pausable_buffer(std::uint64_t bytes) {
  const SharedBuffer::PortLimits port{2'000, 65536 / 4};
  return {bytes, {port, port, port}, kPausable, 500, 300};
}

TEST_CASE("pause control: an empty buffer pauses nobody") {
  const SharedBuffer buffer = pausable_buffer(100'000);
  PauseControl control(kPausePorts);
  CHECK_FALSE(control.pause(buffer, 0, 3));
  CHECK_FALSE(control.active());
  CHECK_FALSE(control.resume(buffer, 0, 3));  // was not told to pause
}

TEST_CASE("pause control: told once, and to go on once") {
  SharedBuffer buffer = pausable_buffer(100'000);
  PauseControl control(kPausePorts);
  while (!buffer.must_pause(1, 3)) buffer.charge(1, 3, 500, SharedBuffer::Place::buffer);
  CHECK(control.pause(buffer, 1, 3));
  CHECK_FALSE(control.pause(buffer, 1, 3));
  CHECK(control.told(1, 3));
  CHECK_FALSE(control.told(1, 2));
  CHECK_FALSE(control.told(0, 3));
  CHECK(control.count() == 1);
  CHECK_FALSE(control.resume(buffer, 1, 3));  // not empty enough
  while (!buffer.may_resume(1, 3)) buffer.release(1, 3, 500);
  CHECK(control.resume(buffer, 1, 3));
  CHECK_FALSE(control.resume(buffer, 1, 3));
  CHECK_FALSE(control.active());
}

TEST_CASE("pause control: a failed link forgets the pauses of its port alone") {
  SharedBuffer buffer = pausable_buffer(60'000);
  PauseControl control(kPausePorts);
  for (const std::uint8_t c : {std::uint8_t{2}, std::uint8_t{3}}) {
    for (std::uint16_t port = 0; port < 2; ++port) {
      while (!buffer.must_pause(port, c)) buffer.charge(port, c, 500, SharedBuffer::Place::buffer);
      CHECK(control.pause(buffer, port, c));
    }
  }
  CHECK(control.count() == 4);
  control.forget(0);
  CHECK(control.count() == 2);
  CHECK_FALSE(control.told(0, 2));
  CHECK(control.told(1, 2));
  CHECK(control.pause(buffer, 0, 2));  // its buffer still has reason to
  control.forget(2);
  CHECK(control.count() == 3);
}

TEST_CASE("pause control: for any traffic the count is that of ports and classes told") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 30));
  INFO("seed " << seed);
  Random random(seed, 4);
  SharedBuffer buffer = pausable_buffer(40'000);
  PauseControl control(kPausePorts);
  struct HeldPacket {
    std::uint16_t port;
    std::uint8_t traffic_class;
    std::uint32_t size;
  };
  std::vector<HeldPacket> held;
  std::array<std::array<bool, 4>, kPausePorts> told{};
  std::uint64_t changes = 0;
  for (int i = 0; i < 2'000; ++i) {
    // Fills and empties by turns.
    if (held.empty() || random.below(10) < (i / 200 % 2 == 0 ? 7U : 3U)) {
      const HeldPacket packet{static_cast<std::uint16_t>(random.below(kPausePorts)),
                              static_cast<std::uint8_t>(2 + random.below(2)),
                              static_cast<std::uint32_t>(64 + random.below(1'400))};
      const auto place = buffer.place_lossless(packet.port, packet.traffic_class, packet.size);
      if (place == SharedBuffer::Place::none) continue;
      buffer.charge(packet.port, packet.traffic_class, packet.size, place);
      held.push_back(packet);
      bool& at = told[packet.port][packet.traffic_class];
      const bool due = buffer.must_pause(packet.port, packet.traffic_class) && !at;
      CHECK(control.pause(buffer, packet.port, packet.traffic_class) == due);
      if (due) at = true;
      changes += due ? 1 : 0;
    } else {
      const std::size_t which = random.below(held.size());
      const HeldPacket packet = held[which];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      buffer.release(packet.port, packet.traffic_class, packet.size);
      bool& at = told[packet.port][packet.traffic_class];
      const bool due = buffer.may_resume(packet.port, packet.traffic_class) && at;
      CHECK(control.resume(buffer, packet.port, packet.traffic_class) == due);
      if (due) at = false;
      changes += due ? 1 : 0;
    }
    std::uint32_t count = 0;
    for (const auto& port : told) {
      for (const bool one : port) count += one ? 1 : 0;
    }
    REQUIRE(control.count() == count);
    REQUIRE(control.active() == (count != 0));
  }
  CHECK(changes > 10);
}

}  // namespace
}  // namespace paceline::fabric
