// The acknowledge extended transport header: what the responder says about the PSN it names, and
// the message sequence number (IBTA vol. 1, 9.7.5.1.2 to 9.7.5.2.8).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline::wire {

// Syndrome bits 6:5. Bit 7 and the value 2 are reserved.
enum class AethKind : std::uint8_t { ack = 0, rnr_nak = 1, reserved = 2, nak = 3 };

enum class NakCode : std::uint8_t {
  psn_sequence_error = 0,
  invalid_request = 1,
  remote_access_error = 2,
  remote_operational_error = 3,
  invalid_rd_request = 4,  // reliable datagram only: never sent here
};
inline constexpr std::uint8_t kNakCodes = 5;

// "No end-to-end credit": what a responder without a shared limit says.
inline constexpr std::uint8_t kCreditUnlimited = 31;

struct Aeth {
  static constexpr std::size_t kBytes = 4;
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  // 24 bits

  constexpr AethKind kind() const { return static_cast<AethKind>((syndrome >> 5) & 3U); }
  constexpr std::uint8_t value() const { return syndrome & 0x1FU; }  // credit, timer or NAK code
  constexpr NakCode nak_code() const { return static_cast<NakCode>(value()); }
  constexpr bool is_ack() const { return (syndrome & 0xE0U) == 0; }
  // Bit 7 clear, no reserved kind, no reserved NAK code.
  constexpr bool is_valid() const {
    if ((syndrome & 0x80U) != 0 || kind() == AethKind::reserved) return false;
    return kind() != AethKind::nak || value() < kNakCodes;
  }

  // credit_code and timer_code: 0..31.
  static constexpr Aeth ack(std::uint32_t msn, std::uint8_t credit_code = kCreditUnlimited) {
    return {static_cast<std::uint8_t>(credit_code & 0x1FU), msn & 0xFF'FFFFU};
  }
  static constexpr Aeth rnr_nak(std::uint32_t msn, std::uint8_t timer_code) {
    return {static_cast<std::uint8_t>(0x20U | (timer_code & 0x1FU)), msn & 0xFF'FFFFU};
  }
  static constexpr Aeth nak(std::uint32_t msn, NakCode code) {
    return {static_cast<std::uint8_t>(0x60U | static_cast<unsigned>(code)), msn & 0xFF'FFFFU};
  }

  static Aeth load(const std::byte* p) { return {load_u8(p), load_be24(p + 1)}; }
  void store(std::byte* p) const {
    store_be32(p, std::uint32_t{syndrome} << 24 | (msn & 0xFF'FFFFU));
  }
  friend bool operator==(const Aeth&, const Aeth&) = default;
};

// Receive credits named by a credit code (IBTA vol. 1, 9.7.7.2, "encoding of end-to-end credits"):
// 0, 1, 2, 3, then 2^k and 3 * 2^(k-1) in turn up to 32768. 31 means no limit is told: use
// is_credit_limited first.
constexpr bool is_credit_limited(std::uint8_t credit_code) {
  return credit_code != kCreditUnlimited;
}
constexpr std::uint32_t credits_from_code(std::uint8_t credit_code) {
  if (credit_code < 4) return credit_code;
  const unsigned octave = credit_code / 2U;  // code 4 -> 2 -> 4 credits
  return (credit_code % 2U == 0 ? 2U : 3U) << (octave - 1U);
}
static_assert(credits_from_code(4) == 4 && credits_from_code(5) == 6 && credits_from_code(6) == 8);
static_assert(credits_from_code(29) == 24'576 && credits_from_code(30) == 32'768);

// Receiver-not-ready timer (IBTA vol. 1, 9.7.5.2.8): code 1 is 10 us, then 20, 30, 40 us, 60, 80,
// 120 and so on like the credits; code 0 is the longest, 655.36 ms.
constexpr Picos rnr_timer(std::uint8_t timer_code) {
  constexpr std::int64_t kTenMicros = 10'000'000;
  if (timer_code == 0) return {65'536 * kTenMicros};
  return {std::int64_t{timer_code == 31 ? 49'152U : credits_from_code(timer_code)} * kTenMicros};
}
static_assert(rnr_timer(1) == picos_from_micros(10) && rnr_timer(14) == picos_from_micros(1280));
static_assert(rnr_timer(25) == picos_from_micros(61'440));
static_assert(rnr_timer(0) == picos_from_micros(655'360));
static_assert(rnr_timer(31) == picos_from_micros(491'520));

// The shortest timer code that waits at least `wait`; the longest there is (0) when none does.
constexpr std::uint8_t rnr_timer_code(Picos wait) {
  for (std::uint8_t code = 1; code < 32; ++code) {
    if (rnr_timer(code) >= wait) return code;
  }
  return 0;
}

}  // namespace paceline::wire
