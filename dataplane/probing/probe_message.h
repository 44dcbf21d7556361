// The content of probes and answers: datagrams of 64 bytes, all of the same length, so that both
// directions take the same time on a wire. The answer comes back at once. When it left is known
// only afterwards, so a second answer reports that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/units.h"

namespace paceline::probing {

enum class ProbeKind : std::uint8_t { probe = 1, answer = 2, times = 3 };

struct ProbeMessage {
  ProbeKind kind = ProbeKind::probe;
  // Belongs to the class in which clocks are compared, not to the class that is measured.
  bool for_clock = false;
  std::uint16_t path = 0;
  std::uint32_t session = 0;   // of the prober: messages of an earlier session are ignored
  std::uint32_t sequence = 0;  // of the probe
  // Times by the clock of the answering host.
  Nanos received{};
  Nanos answered{};

  friend bool operator==(const ProbeMessage&, const ProbeMessage&) = default;
};

inline constexpr std::size_t kProbeBytes = 64;
// A probe and its two answers on a wire: Ethernet, IPv6, UDP, BTH, DETH, the message, ICRC, FCS,
// gap.
inline constexpr double kProbeBits = 3 * 8 * (14 + 40 + 8 + 12 + 8 + kProbeBytes + 4 + 4 + 20);

std::array<std::byte, kProbeBytes> write_probe(const ProbeMessage& message);
// Nothing: the bytes are not a probe message.
std::optional<ProbeMessage> read_probe(std::span<const std::byte> bytes);

}  // namespace paceline::probing
