// A port that notes when packets with payload leave it: how far the gaps between the packets of a
// queue pair are from what its rate says. Stands in front of the port that is measured.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/port/port.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline::bench {

class DepartureNotes final : public Port {
 public:
  // `flows` with source ports from `first_port` on, each of `gap` between full packets.
  DepartureNotes(Port& behind, std::uint32_t flows, std::uint16_t first_port, Picos gap)
      : behind_(behind), first_port_(first_port), gap_(gap), last_(flows, Picos{-1}) {}

  std::size_t rx(std::span<Packet*> burst) override { return behind_.rx(burst); }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    // What is taken is gone afterwards: who they belong to is read before.
    flows_.clear();
    for (const Packet* packet : burst) {
      const bool data = packet->payload_bytes != 0 && packet->bth_offset != 0;
      flows_.push_back(data ? wire::load_be16(packet->header.data() + packet->bth_offset - 8U) -
                                  std::uint32_t{first_port_}
                            : kNone);
    }
    const std::size_t taken = behind_.tx(now, traffic_class, burst);
    for (std::size_t i = 0; i < taken; ++i) note(now, flows_[i]);
    return taken;
  }
  Picos rx_ready_at() const override { return behind_.rx_ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return behind_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return behind_.packets(); }
  PortInfo info() const override { return behind_.info(); }

  // From now on.
  void begin() {
    counting_ = true;
    std::fill(last_.begin(), last_.end(), Picos{-1});
  }
  void end() { counting_ = false; }
  // Nanoseconds that gaps were longer, and shorter, than the rate says.
  const Histogram& late() const { return late_; }
  const Histogram& early() const { return early_; }

 private:
  static constexpr std::uint32_t kNone = ~0U;

  void note(Picos now, std::uint32_t flow) {
    if (!counting_ || flow >= last_.size()) return;
    Picos& last = last_[flow];
    if (last.count >= 0) {
      const std::int64_t off = ((now - last) - gap_).count / 1000;
      (off >= 0 ? late_ : early_).record(static_cast<std::uint64_t>(off >= 0 ? off : -off));
    }
    last = now;
  }

  Port& behind_;
  std::uint16_t first_port_;
  Picos gap_;
  std::vector<Picos> last_;
  std::vector<std::uint32_t> flows_;
  bool counting_ = false;
  Histogram late_;
  Histogram early_;
};

}  // namespace paceline::bench
