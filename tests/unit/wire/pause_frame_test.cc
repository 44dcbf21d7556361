#include "dataplane/wire/host/pause_frame.h"

#include <catch2/catch.hpp>

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::wire {
namespace {

TEST_CASE("pause frame: one class paused until further notice, or resumed (802.1Qbb)") {
  for (std::uint8_t traffic_class = 0; traffic_class < 8; ++traffic_class) {
    for (const bool pause : {true, false}) {
      const auto frame = build_pause_frame(MacAddress::local(9), traffic_class, pause);
      const std::byte* p = frame.data();
      CHECK(load_be48(p) == 0x0180C2000001);
      CHECK(MacAddress::load(p + 6) == MacAddress::local(9));
      CHECK(load_be16(p + 12) == 0x8808);
      CHECK(load_be16(p + 14) == 0x0101);
      CHECK(load_be16(p + 16) == 1U << traffic_class);
      for (std::size_t c = 0; c < 8; ++c) {
        CHECK(load_be16(p + 18 + 2 * c) == (pause && c == traffic_class ? 0xFFFF : 0));
      }
      for (std::size_t i = 34; i < frame.size(); ++i) CHECK(frame[i] == std::byte{0});
      ParsedPacket parsed;
      CHECK(parse_frame(frame, parsed) == ParseError::not_ip);
    }
  }
}

}  // namespace
}  // namespace paceline::wire
