#include "dataplane/neighbour/resolving_port.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace paceline::neighbour {
namespace {

using wire::IpAddress;
using wire::kEthernetBytes;
using wire::MacAddress;

constexpr std::size_t kFlushBurst = 32;
// A flood of frames for the host stack must not keep rx from returning.
constexpr unsigned kMaxRounds = 4;

const HostConfig& checked(const HostConfig& config) {
  const std::vector<std::string> wrong = problems(config);
  if (wrong.empty()) return config;
  std::string text = "host configuration:";
  for (const std::string& line : wrong) text += "\n  " + line;
  throw std::invalid_argument(text);
}

// Text for a counter of drops.
const char* reason_of(const ResolvingCounters& c, const std::uint64_t& counter) {
  struct Reason {
    const std::uint64_t& counter;
    const char* text;
  };
  const Reason reasons[] = {{c.drop_not_ip, "not IP"},
                            {c.drop_too_long, "longer than the IP MTU"},
                            {c.drop_no_room, "no room for a tag"},
                            {c.drop_not_unicast, "not to a single host"},
                            {c.drop_own_address, "to ourselves"},
                            {c.drop_no_route, "no route"},
                            {c.drop_unanswered, "no answer from the neighbour"},
                            {c.drop_failed, "the neighbour was silent"},
                            {c.drop_table_full, "neighbour table full"},
                            {c.drop_park_full, "too many wait for the neighbour"},
                            {c.own_dropped, "too many of our own wait"}};
  for (const Reason& reason : reasons) {
    if (&reason.counter == &counter) return reason.text;
  }
  return "";
}

std::size_t slot_index(const IpAddress& a) {
  return static_cast<std::size_t>((a.high() ^ a.low()) * 0x9E37'79B9'7F4A'7C15U >> 56);
}

}  // namespace

void ResolvingPort::Fifo::push(Packet* packet) {
  packet->next = nullptr;
  (head == nullptr ? head : tail->next) = packet;
  tail = packet;
  ++count;
}

Packet* ResolvingPort::Fifo::pop() {
  Packet* packet = head;
  head = packet->next;
  if (head == nullptr) tail = nullptr;
  packet->next = nullptr;
  --count;
  return packet;
}

ResolvingPort::ResolvingPort(Port& behind, const HostConfig& config, Random random)
    : behind_(&behind),
      info_(behind.info()),
      host_(checked(config), random),
      ip_mtu_(config.ip_mtu),
      park_limit_(config.limits.parked),
      park_limit_each_(config.limits.parked_per_neighbour),
      tagged_(config.vlan_id.has_value()),
      parked_(config.limits.capacity) {
  static_assert(kSlots == 256);  // slot_index
  info_.mtu_bytes = std::min(info_.mtu_bytes, path_mtu_of(ip_mtu_));
  if (tagged_ && info_.wire.fixed_overhead == 0) {
    info_.wire.frame_overhead += static_cast<std::uint32_t>(wire::kVlanBytes);
  }
}

ResolvingPort::~ResolvingPort() {
  PacketPool& pool = behind_->packets();
  for (Fifo& fifo : parked_) {
    while (fifo.head != nullptr) pool.free(fifo.pop());
  }
  for (auto* fifos : {&queued_own_, &queued_}) {
    for (Fifo& fifo : *fifos) {
      while (fifo.head != nullptr) pool.free(fifo.pop());
    }
  }
}

PortInfo ResolvingPort::info() const { return info_; }

// ---- sending ----

void ResolvingPort::write_addresses(Packet& packet, const MacAddress& destination) const {
  std::memcpy(packet.header.data(), destination.bytes.data(), 6);
  std::memcpy(packet.header.data() + 6, host_.mac().bytes.data(), 6);
}

// Decides by the packet alone and, as a rule, by the cached destination.
ResolvingPort::Fate ResolvingPort::prepare(Packet& packet, std::uint8_t traffic_class) {
  std::byte* const p = packet.header.data();
  if (packet.header_bytes < kEthernetBytes) return {&counters_.drop_not_ip};
  std::size_t l3 = kEthernetBytes;
  if (tagged_) {
    const std::size_t before = packet.header_bytes;
    const std::size_t bytes = wire::set_vlan(packet.header, before, *host_.tci(traffic_class));
    if (bytes == 0) return {&counters_.drop_no_room};
    packet.header_bytes = static_cast<std::uint16_t>(bytes);
    if (packet.bth_offset != 0) {
      packet.bth_offset = static_cast<std::uint16_t>(packet.bth_offset + bytes - before);
    }
    l3 += wire::kVlanBytes;
  }
  const std::uint16_t type = wire::load_be16(p + l3 - 2);
  const bool v4 = type == wire::kEtherTypeIpv4;
  if ((!v4 && type != wire::kEtherTypeIpv6) ||
      packet.header_bytes < l3 + (v4 ? wire::kIpv4Bytes : wire::kIpv6Bytes)) {
    return {&counters_.drop_not_ip};
  }
  const std::size_t icrc = packet.bth_offset == 0 ? 0 : wire::kIcrcBytes;
  if (packet.header_bytes - l3 + packet.payload_bytes + icrc > ip_mtu_) {
    return {&counters_.drop_too_long};
  }
  const std::byte* const ip = p + l3;
  const IpAddress destination = v4 ? IpAddress::load_v4(ip + 16) : IpAddress::load_v6(ip + 24);
  Slot& slot = slots_[slot_index(destination)];
  if (slot.valid_until > now_ && slot.destination == destination) [[likely]] {
    write_addresses(packet, slot.mac);
    return {};
  }
  const IpAddress source = v4 ? IpAddress::load_v4(ip + 12) : IpAddress::load_v6(ip + 8);
  return prepare_slow(packet, source, destination, slot);
}

ResolvingPort::Fate ResolvingPort::prepare_slow(Packet& packet, const IpAddress& source,
                                                const IpAddress& destination, Slot& slot) {
  ++counters_.slow_lookups;
  IpAddress hop;
  switch (host_.routes().next_hop(destination, hop)) {
    case HostRoutes::Hop::found:
      break;
    case HostRoutes::Hop::own:
      return {&counters_.drop_own_address};
    case HostRoutes::Hop::not_unicast:
      return {&counters_.drop_not_unicast};
    case HostRoutes::Hop::no_route:
      return {&counters_.drop_no_route};
  }
  const std::uint8_t local = host_.routes().asks_as(source, hop);
  if (local == HostRoutes::kNotOwn) return {&counters_.drop_no_route};
  const NeighbourTable::Route route = host_.table().use(now_, hop, local);
  forget_cached();  // to make place for this one, another may have gone
  switch (route.use) {
    case NeighbourTable::Use::send:
      slot = {destination, route.valid_until, route.mac};
      write_addresses(packet, route.mac);
      return {};
    case NeighbourTable::Use::wait: {
      const bool full = parked_[route.index].count >= park_limit_each_ ||
                        parked_total_ >= park_limit_ || behind_->packets().scarce();
      return full ? Fate{&counters_.drop_park_full} : Fate{nullptr, route.index};
    }
    case NeighbourTable::Use::failed:
      return {&counters_.drop_failed};
    case NeighbourTable::Use::full:
      break;
  }
  return {&counters_.drop_table_full};
}

void ResolvingPort::drop(Packet& packet, std::uint64_t& counter) {
  ++counter;
  if (drop_tap_ != nullptr) [[unlikely]] {
    drop_tap_->show(now_, true, packet);
    drop_tap_->settle(paceline::Fate::never_sent, reason_of(counters_, counter));
  }
  behind_->packets().free(&packet);
}

void ResolvingPort::keep_or_drop(Packet& packet, std::uint8_t traffic_class, const Fate& fate) {
  if (fate.drop != nullptr) {
    drop(packet, *fate.drop);
    return;
  }
  packet.traffic_class = traffic_class;
  parked_[fate.park].push(&packet);
  ++parked_total_;
  ++counters_.tx_parked;
}

// A port takes a burst from its front. So runs of packets that can leave go to the port behind as
// they are. A packet that cannot leave is parked or dropped only after all packets before it have
// left.
std::size_t ResolvingPort::tx(Picos now, std::uint8_t traffic_class,
                              std::span<Packet* const> burst) {
  now_ = now;
  forget_cached();
  if ((queued_mask_ >> traffic_class & 1U) != 0 && !flush(traffic_class)) return 0;
  std::size_t done = 0;
  std::size_t ready = 0;  // packets from `done` on that can leave
  const auto send_ready = [&] {
    if (ready == 0) return true;
    const std::size_t sent = behind_->tx(now, traffic_class, burst.subspan(done, ready));
    counters_.tx_sent += sent;
    done += sent;
    return sent == std::exchange(ready, 0);
  };
  bool open = true;
  while (open && done + ready < burst.size()) {
    Packet& packet = *burst[done + ready];
    const Fate fate = prepare(packet, traffic_class);
    if (fate.send()) [[likely]] {
      ++ready;
      continue;
    }
    open = send_ready();
    if (!open) break;
    keep_or_drop(packet, traffic_class, fate);
    ++done;
  }
  if (open) send_ready();
  counters_.tx_taken += done;
  if (host_.table().next_deadline() <= now) {
    run_due();
    flush_all();
  }
  return done;
}

// ---- receiving ----

std::size_t ResolvingPort::rx(std::span<Packet*> burst) {
  std::size_t filled = 0;
  for (unsigned round = 0; round < kMaxRounds && filled < burst.size(); ++round) {
    const std::span<Packet*> room = burst.subspan(filled);
    const std::size_t received = behind_->rx(room);
    counters_.rx_packets += received;
    for (std::size_t i = 0; i < received; ++i) {
      Packet* const packet = room[i];
      const HostStack::Result result = host_.receive(now_, *packet);
      switch (result.verdict) {
        case HostStack::Verdict::engine:
          burst[filled++] = packet;
          continue;
        case HostStack::Verdict::answer:
          ++counters_.rx_answered;
          enqueue_own(packet);
          break;
        case HostStack::Verdict::taken:
        case HostStack::Verdict::refused:
          ++counters_.rx_consumed;
          behind_->packets().free(packet);
          break;
      }
      if (result.resolved != NeighbourTable::kNone) release(result.resolved);
    }
    if (received < room.size()) break;
  }
  counters_.rx_engine += filled;
  if (queued_mask_ != 0) flush_all();
  return filled;
}

// ---- what is on its way ----

// True when nothing of the class is left.
bool ResolvingPort::flush(std::uint8_t traffic_class) {
  Fifo& own = queued_own_[traffic_class];
  const std::uint32_t own_before = own.count;
  bool all = flush(own, traffic_class, counters_.own_sent);
  own_count_ -= own_before - own.count;
  all = all && flush(queued_[traffic_class], traffic_class, counters_.tx_sent);
  if (all) queued_mask_ &= ~(1U << traffic_class);
  return all;
}

bool ResolvingPort::flush(Fifo& fifo, std::uint8_t traffic_class, std::uint64_t& sent_counter) {
  while (fifo.head != nullptr) {
    std::array<Packet*, kFlushBurst> burst;
    std::size_t count = 0;
    for (Packet* p = fifo.head; p != nullptr && count < burst.size(); p = p->next) {
      burst[count++] = p;
    }
    Packet* const rest = burst[count - 1]->next;  // packets that were taken must not be read
    const std::size_t sent = behind_->tx(now_, traffic_class, {burst.data(), count});
    sent_counter += sent;
    fifo.count -= static_cast<std::uint32_t>(sent);
    fifo.head = sent == count ? rest : burst[sent];
    if (fifo.head == nullptr) fifo.tail = nullptr;
    if (sent != count) return false;
  }
  return true;
}

void ResolvingPort::flush_all() {
  for (unsigned c = kTrafficClasses; c-- > 0;) {
    if ((queued_mask_ >> c & 1U) != 0) flush(static_cast<std::uint8_t>(c));
  }
}

void ResolvingPort::enqueue_own(Packet* packet) {
  if (own_count_ >= kMaxQueuedOwn) {
    drop(*packet, counters_.own_dropped);
    return;
  }
  ++own_count_;
  queued_mask_ |= 1U << packet->traffic_class;
  queued_own_[packet->traffic_class].push(packet);
}

Packet* ResolvingPort::new_packet() {
  Packet* const packet = behind_->packets().alloc();
  ++(packet == nullptr ? counters_.own_no_packet : counters_.own_made);
  return packet;
}

// The neighbour's address is known: the packets that waited for it leave in order.
void ResolvingPort::release(std::uint32_t neighbour) {
  Fifo& fifo = parked_[neighbour];
  while (fifo.head != nullptr) {
    Packet* const packet = fifo.pop();
    --parked_total_;
    write_addresses(*packet, host_.table()[neighbour].mac);
    queued_mask_ |= 1U << packet->traffic_class;
    queued_[packet->traffic_class].push(packet);
  }
}

void ResolvingPort::give_up(std::uint32_t neighbour) {
  Fifo& fifo = parked_[neighbour];
  while (fifo.head != nullptr) {
    drop(*fifo.pop(), counters_.drop_unanswered);
    --parked_total_;
  }
}

// ---- time ----

void ResolvingPort::forget_cached() {
  if (epoch_ == host_.table().epoch()) return;
  epoch_ = host_.table().epoch();
  for (Slot& slot : slots_) slot.valid_until = Picos{0};
}

void ResolvingPort::run_due() {
  for (;;) {
    const NeighbourTable::Due due = host_.table().next_due(now_);
    switch (due.action) {
      case NeighbourTable::Action::none:
        return;
      case NeighbourTable::Action::failed:
        give_up(due.index);
        break;
      case NeighbourTable::Action::solicit_multicast:
      case NeighbourTable::Action::solicit_unicast:
        if (Packet* const packet = new_packet(); packet != nullptr) {
          const bool unicast = due.action == NeighbourTable::Action::solicit_unicast;
          host_.build_solicit(host_.table()[due.index], unicast, *packet);
          enqueue_own(packet);
        }
        break;
    }
  }
}

void ResolvingPort::poll(Picos now) {
  now_ = now;
  if (!started_) {
    started_ = true;
    host_.announce(now);
  }
  if (host_.table().next_deadline() <= now) run_due();
  while (host_.next_announcement() <= now) {
    for (std::uint8_t i = 0; i < host_.routes().size(); ++i) {
      Packet* const packet = new_packet();
      if (packet == nullptr) break;
      host_.build_announcement(i, *packet);
      enqueue_own(packet);
    }
    host_.announced(now);
  }
  if (queued_mask_ != 0) flush_all();
}

Picos ResolvingPort::next_deadline() const {
  if (!started_) return now_;
  Picos next = earlier(host_.table().next_deadline(), host_.next_announcement());
  for (std::uint32_t mask = queued_mask_; mask != 0; mask &= mask - 1) {
    const auto traffic_class = static_cast<std::uint8_t>(std::countr_zero(mask));
    next = earlier(next, behind_->tx_ready_at(traffic_class));
  }
  return next == kNever ? kNever : later(next, now_ + Picos{1});
}

// ---- asked from above ----

bool ResolvingPort::resolve(Picos now, const IpAddress& destination) {
  now_ = now;
  IpAddress hop;
  if (host_.routes().next_hop(destination, hop) != HostRoutes::Hop::found) return false;
  const std::uint8_t local = host_.routes().asks_as(IpAddress{}, hop);
  if (local == HostRoutes::kNotOwn) return false;
  const bool known = host_.table().use(now, hop, local).use == NeighbourTable::Use::send;
  run_due();
  flush_all();
  return known;
}

void ResolvingPort::confirm(Picos now, const IpAddress& destination) {
  IpAddress hop;
  if (host_.routes().next_hop(destination, hop) != HostRoutes::Hop::found) return;
  host_.table().confirm(now, hop);
}

void ResolvingPort::set_mac(Picos now, const MacAddress& mac) { host_.set_mac(now, mac); }

void ResolvingPort::announce(Picos now) {
  started_ = true;
  host_.announce(now);
}

std::string ResolvingPort::check_conservation() const {
  std::size_t parked = 0;
  for (const Fifo& fifo : parked_) parked += fifo.count;
  if (parked != parked_total_) return "parked packets are miscounted";
  std::uint64_t queued = 0;
  std::uint64_t own = 0;
  for (unsigned c = 0; c < kTrafficClasses; ++c) {
    own += queued_own_[c].count;
    queued += queued_[c].count;
    if ((own + queued != 0) && queued_mask_ == 0) return "queued packets that are never sent";
  }
  const ResolvingCounters& c = counters_;
  if (own != own_count_) return "own queued packets are miscounted";
  if (c.tx_taken != c.tx_sent + c.tx_dropped() + parked + queued) {
    return "tx: taken " + std::to_string(c.tx_taken) + ", sent " + std::to_string(c.tx_sent) +
           ", dropped " + std::to_string(c.tx_dropped()) + ", parked " + std::to_string(parked) +
           ", queued " + std::to_string(queued);
  }
  if (c.own_made + c.rx_answered != c.own_sent + c.own_dropped + own) return "own frames are lost";
  if (c.rx_packets != c.rx_engine + c.rx_answered + c.rx_consumed) return "rx: packets are lost";
  return host_.table().check();
}

}  // namespace paceline::neighbour
