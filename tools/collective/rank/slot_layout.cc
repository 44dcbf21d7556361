#include "tools/collective/rank/slot_layout.h"

#include <algorithm>

namespace paceline::rank {

namespace {

constexpr std::uint64_t kSlotAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

SlotLayout::SlotLayout(const workload::Schedule& schedule, const PartCut& cut, std::uint32_t window)
    : schedule_(schedule),
      buffers_(schedule, cut, window),
      slots_at_(aligned(buffers_.elements() * sizeof(float))),
      window_(std::min<std::uint64_t>(window, cut.parts())),
      receive_at_(schedule.transfers.size()),
      send_at_(schedule.transfers.size()),
      received_(schedule.ranks),
      sent_(schedule.ranks) {
  for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
    const workload::Transfer& transfer = schedule.transfers[t];
    const std::uint64_t room = aligned(transfer.pieces * cut.part_room() * sizeof(float));
    send_at_[t] = sent_[transfer.from];
    sent_[transfer.from] += room;
    if (transfer.from == transfer.to) continue;
    receive_at_[t] = received_[transfer.to];
    received_[transfer.to] += room;
  }
}

std::uint64_t SlotLayout::receive_slot(std::uint32_t transfer, std::uint64_t part) const {
  return slots_at_ + part % window_ * received_[schedule_.transfers[transfer].to] +
         receive_at_[transfer];
}

std::uint64_t SlotLayout::send_slot(std::uint32_t transfer, std::uint64_t part) const {
  const std::uint32_t rank = schedule_.transfers[transfer].from;
  return slots_at_ + window_ * received_[rank] + part % window_ * sent_[rank] + send_at_[transfer];
}

std::uint64_t SlotLayout::staging_bytes(std::uint32_t rank) const {
  return slots_at_ + window_ * (received_[rank] + sent_[rank]);
}

}  // namespace paceline::rank
