#include "dataplane/probing/probe_message.h"

#include "dataplane/wire/bytes/endian.h"

namespace paceline::probing {

namespace {

// magic:16 version:8 kind:8 flags:8 0:8 path:16 session:32 sequence:32 received:64 answered:64 0...
constexpr std::uint16_t kMagic = 0x5042;  // "PB"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kForClock = 1;

}  // namespace

std::array<std::byte, kProbeBytes> write_probe(const ProbeMessage& message) {
  std::array<std::byte, kProbeBytes> out{};
  wire::store_be16(&out[0], kMagic);
  wire::store_u8(&out[2], kVersion);
  wire::store_u8(&out[3], static_cast<std::uint8_t>(message.kind));
  wire::store_u8(&out[4], message.for_clock ? kForClock : 0);
  wire::store_be16(&out[6], message.path);
  wire::store_be32(&out[8], message.session);
  wire::store_be32(&out[12], message.sequence);
  wire::store_be64(&out[16], static_cast<std::uint64_t>(message.received.count));
  wire::store_be64(&out[24], static_cast<std::uint64_t>(message.answered.count));
  return out;
}

std::optional<ProbeMessage> read_probe(std::span<const std::byte> bytes) {
  if (bytes.size() != kProbeBytes) return std::nullopt;
  const std::byte* const at = bytes.data();
  const std::uint8_t kind = wire::load_u8(at + 3);
  if (wire::load_be16(at) != kMagic || wire::load_u8(at + 2) != kVersion || kind < 1 || kind > 3) {
    return std::nullopt;
  }
  ProbeMessage out;
  out.kind = static_cast<ProbeKind>(kind);
  out.for_clock = (wire::load_u8(at + 4) & kForClock) != 0;
  out.path = wire::load_be16(at + 6);
  out.session = wire::load_be32(at + 8);
  out.sequence = wire::load_be32(at + 12);
  out.received = Nanos{static_cast<std::int64_t>(wire::load_be64(at + 16))};
  out.answered = Nanos{static_cast<std::int64_t>(wire::load_be64(at + 24))};
  return out;
}

}  // namespace paceline::probing
