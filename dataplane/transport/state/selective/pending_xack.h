// Selective repeat's responder: the next XACK. Collects what the packets since the last one showed,
// and whether one is due.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"
#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/headers/aeth.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class PendingXack {
 public:
  // The packet at hand triggers the next XACK. at: when it arrived.
  void on_packet(const wire::ParsedPacket& parsed, const Packet& packet, Picos at);
  void on_duplicate() { duplicate_ = true; }
  void on_trimmed() { trimmed_ = true; }  // the packet at hand has lost its payload

  // An XACK is due once the packet at hand has been dealt with.
  void want() { due_ = true; }
  // It says `refusal`, an RNR NAK or a NAK, in place of an ACK.
  void want(wire::Aeth refusal) {
    due_ = true;
    refusal_ = refusal;
  }
  bool refuses() const { return !refusal_.is_ack(); }
  // What it says, where an ACK would be `ack`; nothing if none is due. It is due no more.
  std::optional<wire::Aeth> take_due(wire::Aeth ack) {
    if (!std::exchange(due_, false)) return std::nullopt;
    const wire::Aeth refusal = std::exchange(refusal_, {});
    return refusal.is_ack() ? ack : refusal;
  }

  // An XACK, but for its AETH and bitmap. records: of telemetry, if the peer wants them; they refer
  // to this until the next packet. What packets showed is forgotten, the sum of marks is not.
  wire::Xack take(Picos now, bool records);

 private:
  bool due_ = false;
  bool duplicate_ = false;
  bool trimmed_ = false;
  bool marked_ = false;
  wire::Aeth refusal_{};  // an ACK: none
  Psn trigger_;
  std::uint16_t trigger_port_ = 0;
  std::uint16_t marked_port_ = 0;
  std::uint32_t marked_bytes_ = 0;
  Picos arrival_{0};
  std::uint16_t path_ = 0;          // that the records are of
  std::uint16_t record_count_ = 0;  // of telemetry, in `records_`
  std::array<std::byte, kIntHops * wire::kIntRecordBytes> records_{};
};

}  // namespace paceline::transport
