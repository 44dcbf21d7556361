#include "dataplane/wire/headers/headers.h"

#include <array>
#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/headers/dscp.h"

namespace paceline::wire {
namespace {

template <std::size_t N>
std::array<std::byte, N> bytes(const std::array<unsigned, N>& values) {
  std::array<std::byte, N> out;
  for (std::size_t i = 0; i < N; ++i) out[i] = static_cast<std::byte>(values[i]);
  return out;
}

// Stores, compares with `expected`, loads again.
template <class Header, std::size_t N>
void check_layout(const Header& header, const std::array<unsigned, N>& expected) {
  std::array<std::byte, N> out;
  out.fill(std::byte{0xEE});
  header.store(out.data());
  CHECK(out == bytes(expected));
  CHECK(Header::load(out.data()) == header);
}

}  // namespace

TEST_CASE("endian: every width at every alignment") {
  std::array<std::byte, 24> p{};
  for (std::size_t at = 0; at < 8; ++at) {
    store_be64(p.data() + at, 0x0102030405060708);
    CHECK(load_be64(p.data() + at) == 0x0102030405060708);
    CHECK(load_be48(p.data() + at) == 0x010203040506);
    CHECK(load_be32(p.data() + at) == 0x01020304);
    CHECK(load_be24(p.data() + at) == 0x010203);
    CHECK(load_be16(p.data() + at) == 0x0102);
    CHECK(load_le32(p.data() + at) == 0x04030201);
    store_be48(p.data() + at, 0xFFFF'A1A2'A3A4'A5A6);
    CHECK(load_be64(p.data() + at) == 0xA1A2A3A4A5A60708);
    store_be24(p.data() + at, 0xFFB1B2B3);
    CHECK(load_be64(p.data() + at) == 0xB1B2B3A4A5A60708);
    store_le32(p.data() + at, 0xC4C3C2C1);
    CHECK(load_be32(p.data() + at) == 0xC1C2C3C4);
  }
}

TEST_CASE("headers: byte layouts") {
  Bth bth;
  bth.opcode = Opcode::rc_write_only;
  bth.solicited = true;
  bth.pad = 3;
  bth.pkey = 0x7FFF;
  bth.becn = true;
  bth.dest_qpn = 0x123456;
  bth.ack_request = true;
  bth.psn = Psn(0xABCDEF);
  check_layout(bth, std::array<unsigned, 12>{0x0A, 0xB0, 0x7F, 0xFF, 0x40, 0x12, 0x34, 0x56, 0x80,
                                             0xAB, 0xCD, 0xEF});
  bth = Bth{};
  bth.migrated = true;
  bth.version = 5;
  bth.fecn = true;
  check_layout(bth, std::array<unsigned, 12>{0, 0x45, 0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0});
  check_layout(Reth{0x0102030405060708, 0x090A0B0C, 0x0D0E0F10},
               std::array<unsigned, 16>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  check_layout(AtomicEth{0x0102030405060708, 0x090A0B0C, 0x0D0E0F1011121314, 0x15161718191A1B1C},
               std::array<unsigned, 28>{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                        15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28});
  check_layout(Deth{0x11223344, 0x556677},
               std::array<unsigned, 8>{0x11, 0x22, 0x33, 0x44, 0, 0x55, 0x66, 0x77});
  check_layout(Aeth{0x7F, 0x010203}, std::array<unsigned, 4>{0x7F, 1, 2, 3});
}

TEST_CASE("headers: any BTH survives, reserved bits are ignored") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::array<std::byte, 12> wire;
    for (auto& b : wire) b = static_cast<std::byte>(random.next());
    const Bth h = Bth::load(wire.data());
    std::array<std::byte, 12> again;
    h.store(again.data());
    wire[4] &= std::byte{0xC0};
    wire[8] &= std::byte{0x80};
    REQUIRE(again == wire);
    REQUIRE(Bth::load(again.data()) == h);
  }
}

TEST_CASE("AETH: kinds, codes and validity") {
  CHECK(Aeth::ack(7).is_ack());
  CHECK(Aeth::ack(7).kind() == AethKind::ack);
  CHECK(Aeth::ack(7, 12).value() == 12);
  CHECK(Aeth::rnr_nak(7, 25).kind() == AethKind::rnr_nak);
  CHECK(Aeth::rnr_nak(7, 25).value() == 25);
  CHECK_FALSE(Aeth::rnr_nak(7, 25).is_ack());
  CHECK(Aeth::nak(7, NakCode::remote_access_error).kind() == AethKind::nak);
  CHECK(Aeth::nak(7, NakCode::remote_access_error).nak_code() == NakCode::remote_access_error);
  CHECK(Aeth::nak(7, NakCode::psn_sequence_error).syndrome == 0x60);
  CHECK(Aeth::ack(0x1FF'FFFF).msn == 0xFF'FFFF);
  unsigned valid = 0;
  for (unsigned s = 0; s < 256; ++s) {
    const Aeth aeth{static_cast<std::uint8_t>(s), 0};
    if (!aeth.is_valid()) continue;
    ++valid;
    CHECK(s < 0x80);
    CHECK(aeth.kind() != AethKind::reserved);
  }
  CHECK(valid == 32 + 32 + 5);  // credits, timers, NAK codes
}

TEST_CASE("AETH: credits and timers as in the specification's tables") {
  const std::uint32_t credits[] = {
      0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
      256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
  for (std::uint8_t code = 0; code < 31; ++code) CHECK(credits_from_code(code) == credits[code]);
  CHECK(is_credit_limited(30));
  CHECK_FALSE(is_credit_limited(31));
  // In hundredths of a millisecond.
  const std::int64_t timers[] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                 16,    24,   32,   48,    64,    96,    128,   192,
                                 256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                 4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (std::uint8_t code = 0; code < 32; ++code) {
    CHECK(rnr_timer(code) == picos_from_micros(10 * timers[code]));
  }
  CHECK(rnr_timer_code(picos_from_micros(10)) == 1);
  CHECK(rnr_timer_code(picos_from_micros(11)) == 2);
  CHECK(rnr_timer_code(picos_from_micros(61'440)) == 25);
  CHECK(rnr_timer_code(picos_from_micros(491'521)) == 0);
}

TEST_CASE("headers: pad and source port helpers") {
  for (std::uint32_t n = 0; n < 70; ++n) {
    CHECK((n + pad_bytes(n)) % 4 == 0);
    CHECK(pad_bytes(n) < 4);
  }
  CHECK(source_port_from_entropy(0) == 0xC000);
  CHECK(source_port_from_entropy(0xFFFF'FFFF) == 0xFFFF);
}

TEST_CASE("DSCP: what is sent in a class is received in it") {
  CHECK(kDefaultDscpMap.dscp(kDefaultDataClass) == 26);
  CHECK(kDefaultDscpMap.dscp(kControlClass) == 56);
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    CHECK(kDefaultDscpMap.traffic_class(kDefaultDscpMap.dscp(c)) == c);
  }
  for (std::uint8_t d = 0; d < kDscpValues; ++d) CHECK(kDefaultDscpMap.traffic_class(d) == d / 8);
  DscpMap broken = kDefaultDscpMap;
  broken.dscp_of[3] = 8;
  CHECK_FALSE(broken.is_consistent());
}

}  // namespace paceline::wire
