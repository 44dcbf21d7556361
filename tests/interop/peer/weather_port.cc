#include "tests/interop/peer/weather_port.h"

#include <algorithm>

namespace paceline::interop {

namespace {

std::uint8_t opcode_of(const Packet& packet) {
  return std::to_integer<std::uint8_t>(packet.header[packet.bth_offset]);
}

}  // namespace

std::size_t WeatherPort::Outbox::rx(std::span<Packet*> burst) {
  const std::size_t n = std::min(burst.size(), waiting_.size());
  std::copy_n(waiting_.begin(), n, burst.begin());
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::size_t WeatherPort::Outbox::tx(Picos, std::uint8_t traffic_class,
                                    std::span<Packet* const> burst) {
  for (Packet* packet : burst) {
    packet->traffic_class = traffic_class;
    waiting_.push_back(packet);
  }
  return burst.size();
}

std::size_t WeatherPort::Inbox::rx(std::span<Packet*> burst) {
  const std::size_t n = owner_.behind_.rx(burst);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (owner_.pass(Way::in, *burst[i])) {
      burst[kept++] = burst[i];
    } else {
      packets().free(burst[i]);
    }
  }
  return kept;
}

WeatherPort::WeatherPort(Port& behind, std::uint64_t seed)
    : behind_(behind),
      inbox_(*this),
      outbox_(behind),
      in_(inbox_, {}, Random(seed, 1)),
      out_(outbox_, {}, Random(seed, 2)) {}

void WeatherPort::set(Way way, const Impairments& impairments) {
  (way == Way::in ? in_ : out_).set(impairments);
}

bool WeatherPort::pass(Way way, Packet& packet) {
  const std::size_t side = index(way);
  const std::uint8_t opcode = opcode_of(packet);
  if (lose_[side].count != 0 && lose_[side].opcode == opcode) {
    --lose_[side].count;
    return false;
  }
  ++seen_[side][opcode];
  KeptPacket& kept = kept_[side][opcode];
  const auto header = packet.header_view();
  kept.header.assign(header.begin(), header.end());
  kept.payload.clear();
  if (packet.payload_kind == PayloadKind::owned) {
    kept.payload.assign(packet.payload, packet.payload + packet.payload_bytes);
  }
  kept.bth_offset = packet.bth_offset;
  kept.icrc = packet.icrc;
  kept.ecn = packet.ecn;
  if (spoil_[side].count != 0 && spoil_[side].opcode == opcode) {
    --spoil_[side].count;
    packet.icrc ^= 0x0001'0000;
  }
  return true;
}

Packet* WeatherPort::again(const KeptPacket& kept) {
  Packet* const packet = packets().alloc();
  if (packet == nullptr) return nullptr;
  std::copy(kept.header.begin(), kept.header.end(), packet->header.begin());
  std::copy(kept.payload.begin(), kept.payload.end(), packet->payload);
  packet->header_bytes = static_cast<std::uint16_t>(kept.header.size());
  packet->payload_bytes = static_cast<std::uint16_t>(kept.payload.size());
  packet->payload_kind = kept.payload.empty() ? PayloadKind::none : PayloadKind::owned;
  packet->bth_offset = kept.bth_offset;
  packet->icrc = kept.icrc;
  packet->ecn = kept.ecn;
  packet->traffic_class = kDefaultDataClass;
  return packet;
}

bool WeatherPort::repeat(Way way, std::uint8_t opcode) {
  const auto found = kept_[index(way)].find(opcode);
  if (found == kept_[index(way)].end()) return false;
  Packet* const packet = again(found->second);
  if (packet == nullptr) return false;
  ++seen_[index(way)][opcode];
  (way == Way::in ? to_receive_ : to_send_).push_back(packet);
  return true;
}

std::size_t WeatherPort::rx(std::span<Packet*> burst) {
  std::size_t n = 0;
  while (n < burst.size() && !to_receive_.empty()) {
    burst[n++] = to_receive_.front();
    to_receive_.erase(to_receive_.begin());
  }
  return n + in_.rx(burst.subspan(n));
}

std::size_t WeatherPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  outbox_.tx(now, traffic_class, burst);
  send(now);
  return burst.size();
}

void WeatherPort::send(Picos now) {
  std::array<Packet*, 32> burst;
  for (std::size_t n; (n = out_.rx(burst)) != 0;) {
    for (std::size_t i = 0; i < n; ++i) {
      if (pass(Way::out, *burst[i])) {
        to_send_.push_back(burst[i]);
      } else {
        packets().free(burst[i]);
      }
    }
  }
  std::size_t gone = 0;
  while (gone < to_send_.size()) {
    Packet* const packet = to_send_[gone];
    if (behind_.tx(now, packet->traffic_class, {&packet, 1}) == 0) break;
    ++gone;
  }
  to_send_.erase(to_send_.begin(), to_send_.begin() + static_cast<std::ptrdiff_t>(gone));
}

}  // namespace paceline::interop
