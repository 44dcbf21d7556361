// Selective repeat's responder: the next XACK. Collects what packets since the last XACK showed,
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
  // The current packet triggers the next XACK. at: when it arrived.
  void on_packet(const wire::ParsedPacket& parsed, const Packet& packet, Picos at);
  void on_duplicate() { duplicate_ = true; }
  void on_trimmed() { trimmed_ = true; }  // the current packet has lost its payload

  // An XACK is due once the current packet has been handled.
  void want() { due_ = true; }
  // The XACK carries `refusal`, an RNR NAK or a NAK, in place of an ACK.
  void want(wire::Aeth refusal) {
    due_ = true;
    refusal_ = refusal;
  }
  bool refuses() const { return !refusal_.is_ack(); }
  // Its AETH, where an ACK would have `ack`; nothing if none is due. Afterwards none is due.
  std::optional<wire::Aeth> take_due(wire::Aeth ack) {
    if (!std::exchange(due_, false)) return std::nullopt;
    const wire::Aeth refusal = std::exchange(refusal_, {});
    return refusal.is_ack() ? ack : refusal;
  }

  // An XACK without its AETH and bitmap. records: telemetry records, if the peer wants them; they
  // refer to this object until the next packet. Everything that packets showed is forgotten, except
  // the sum of marks.
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
