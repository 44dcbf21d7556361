#include "tests/rt/support/heap_cable.h"

#include <algorithm>
#include <cstring>

#include "dataplane/port/frame_split.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::test {

HeapSource::~HeapSource() = default;

std::size_t HeapSource::take(std::span<Packet*> out) {
  for (Packet*& packet : out) {
    std::unique_ptr<Block> block;
    if (spare_.empty()) {
      block = std::make_unique<Block>();
      block->room = std::make_unique<std::byte[]>(room_);
    } else {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    block->packet.payload = block->room.get();
    packet = &block->packet;
    outside_.emplace(packet, std::move(block));
  }
  return out.size();
}

void HeapSource::give(std::span<Packet* const> packets) {
  for (Packet* packet : packets) {
    const auto found = outside_.find(packet);
    std::unique_ptr<Block> block = std::move(found->second);
    outside_.erase(found);
    if (block->lent == nullptr) spare_.push_back(std::move(block));
  }
}

void HeapSource::lend(Packet& packet, std::unique_ptr<std::byte[]> payload) {
  Block& block = *outside_.at(&packet);
  block.lent = std::move(payload);
  packet.payload = block.lent.get();
}

HeapPort::HeapPort(std::uint16_t mtu, std::size_t capacity, std::uint16_t id)
    : source_(mtu), pool_(source_, capacity, mtu, id) {
  info_.link_rate = rate_from_gbps(10);
  info_.mtu_bytes = mtu;
  info_.payload_room = mtu;
  info_.tx_burst = 32;
  info_.computes_icrc = false;
}

std::size_t HeapPort::tx(Picos, std::uint8_t, std::span<Packet* const> burst) {
  for (Packet* packet : burst) {
    const bool owned = packet->payload_kind == PayloadKind::owned;
    const std::size_t payload = owned ? packet->payload_bytes : 0;
    const std::size_t icrc = packet->bth_offset != 0 ? wire::kIcrcBytes : 0;
    Frame frame;
    frame.size = packet->header_bytes + payload + icrc;
    frame.bytes = std::make_unique_for_overwrite<std::byte[]>(frame.size);
    std::memcpy(frame.bytes.get(), packet->header.data(), packet->header_bytes);
    if (payload != 0) {
      std::memcpy(frame.bytes.get() + packet->header_bytes, packet->payload, payload);
    }
    if (icrc != 0) wire::store_le32(frame.bytes.get() + frame.size - icrc, packet->icrc);
    far_->arriving_.push_back(std::move(frame));
    ++counters_.tx_packets;
    pool_.free(packet);
  }
  pool_.give_back(0);  // an answer is made of what was received
  return burst.size();
}

std::size_t HeapPort::rx(std::span<Packet*> burst) {
  pool_.give_back(0);
  std::size_t n = 0;
  while (n < burst.size() && !arriving_.empty()) {
    const Frame frame = std::move(arriving_.front());
    arriving_.pop_front();
    const FrameParts parts = split_frame({frame.bytes.get(), frame.size});
    if (parts.payload_bytes > info_.payload_room) {
      ++counters_.rx_too_long;
      continue;
    }
    Packet* const packet = pool_.alloc();
    fill_received(*packet, frame.bytes.get(), parts, info_.wire);
    auto payload = std::make_unique_for_overwrite<std::byte[]>(parts.payload_bytes);
    std::memcpy(payload.get(), frame.bytes.get() + parts.header_bytes, parts.payload_bytes);
    source_.lend(*packet, std::move(payload));
    ++counters_.rx_packets;
    burst[n++] = packet;
  }
  return n;
}

}  // namespace paceline::test
