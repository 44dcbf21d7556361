#include "dataplane/fabric/wire/link_taps.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace paceline::fabric {
namespace {

struct TapRecord final : LinkTap {
  void show(Picos now, bool forward, const Packet& packet) override {
    seen.push_back(std::to_string(now.count) + (forward ? " > " : " < ") +
                   std::to_string(packet.digest));
  }
  void settle(Fate fate, const char* reason) override {
    seen.push_back(std::to_string(static_cast<int>(fate)) + " " + reason);
  }
  std::vector<std::string> seen;
};

std::string fate_text(Fate of, const std::string& reason = "") {
  return std::to_string(static_cast<int>(of)) + " " + reason;
}

TEST_CASE("taps: one per link of the spec; others are refused with a reason") {
  LinkTaps taps(2);
  TapRecord record;
  TapRecord second;
  taps.add(1, record);
  CHECK_THROWS_AS(taps.add(1, second), std::invalid_argument);
  CHECK_THROWS_AS(taps.add(2, second), std::invalid_argument);
  CHECK(taps.remove(1));
  CHECK_FALSE(taps.remove(1));
  CHECK_FALSE(taps.remove(2));
  taps.add(1, second);
}

TEST_CASE("taps: a packet is delivered unless it was dropped while it arrived") {
  LinkTaps taps(2);
  TapRecord record;
  taps.add(1, record);
  Packet packet{};
  packet.digest = 7;
  Packet other{};
  other.digest = 8;

  taps.show(2, packet, Picos{10});
  taps.dropped(other, DropReason::buffer_full);  // another tap's
  taps.settle(2, false);
  taps.show(3, packet, Picos{20});
  taps.dropped(packet, DropReason::headroom_exhausted);
  taps.settle(3, false);
  taps.show(3, packet, Picos{30});
  taps.dropped(packet, DropReason::link_loss);
  taps.settle(3, true);
  taps.dropped(packet, DropReason::no_route);  // after it was settled
  taps.show(2, packet, Picos{40});
  taps.settle(2, false);
  CHECK(record.seen == std::vector<std::string>{"10 > 7", fate_text(Fate::delivered), "20 < 7",
                                                fate_text(Fate::refused, "headroom_exhausted"),
                                                "30 < 7", fate_text(Fate::lost, "link_loss"),
                                                "40 > 7", fate_text(Fate::delivered)});
}

TEST_CASE("taps: a packet that was never sent is shown in the direction of its link") {
  LinkTaps taps(1);
  TapRecord record;
  taps.add(0, record);
  Packet packet{};
  packet.digest = 9;
  taps.show_drop(1, packet, Fate::never_sent, DropReason::link_down, Picos{5});
  CHECK(record.seen == std::vector<std::string>{"5 < 9", fate_text(Fate::never_sent, "link_down")});
}

}  // namespace
}  // namespace paceline::fabric
