// A fabric with scripted hosts and no transport: what the fabric's tests drive. Packets carry real
// Ethernet, IPv4 and UDP headers; their digest is their identity.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/network.h"
#include "dataplane/wire/extensions/int_record.h"

namespace paceline::fabric {

struct Send {
  Picos at{0};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t payload = 1000;
  std::uint8_t traffic_class = kDefaultDataClass;
  Ecn ecn = Ecn::ect0;
  std::uint16_t source_port = 50000;
  std::uint8_t opcode = 0x0A;
};

struct Delivery {
  Picos at{0};
  std::uint32_t host = 0;
  std::uint64_t id = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t flags = 0;
  std::uint8_t traffic_class = 0;
  IntStack recorded;  // with FabricSpec::telemetry, on packets with payload
  friend bool operator==(const Delivery&, const Delivery&) = default;
};

inline constexpr std::size_t kLabHeaderBytes = 14 + 20 + 8 + 12;

// Bytes on the wire of a packet the lab builds, with default accounting.
constexpr std::uint32_t lab_wire_bytes(std::uint32_t payload) {
  return WireAccounting{}.wire_bytes(static_cast<std::uint32_t>(kLabHeaderBytes) + payload + 8,
                                     payload);
}

class Lab {
 public:
  explicit Lab(const FabricSpec& spec, unsigned slot_shift = 12)
      : wheel_(Network::actors_needed(spec) + spec.hosts, slot_shift),
        net_(spec, wheel_, 0),
        first_host_(Network::actors_needed(spec)),
        hosts_(spec.hosts) {}

  Network& net() { return net_; }
  EventWheel& wheel() { return wheel_; }
  Picos now() const { return now_; }
  const std::vector<Delivery>& deliveries() const { return deliveries_; }
  // The answer to a packet with payload: one without, in the control class.
  void reply(bool on) { reply_ = on; }
  // Looks at a random queue before every n-th event.
  void look_every(std::uint64_t n) { look_every_ = n; }
  void check_every(std::uint64_t n) { check_every_ = n; }
  const std::string& violation() const { return violation_; }

  // In the order of their times per host.
  void send(const Send& what) {
    Host& host = hosts_[what.from];
    host.script.push_back({what, next_id_++});
    schedule(what.from);
  }

  // Until nothing is left to happen, or `limit`. False when stopped by a violated law.
  bool run(Picos limit = kNever) {
    Picos time{};
    std::uint32_t actor = 0;
    while (wheel_.next_time() <= limit && wheel_.pop(time, actor)) {
      now_ = time;
      ++events_;
      if (look_every_ != 0 && events_ % look_every_ == 0) {
        net_.queue_bytes(static_cast<std::uint32_t>(looker_.below(net_.links())), time);
      }
      if (actor < first_host_) {
        net_.link_fired(actor, time);
      } else {
        poll(actor - first_host_);
      }
      for (const std::uint32_t host : net_.woken_hosts()) poll(host);
      net_.clear_woken();
      if (check_every_ != 0 && events_ % check_every_ == 0) {
        violation_ = net_.check_conservation();
        if (!violation_.empty()) return false;
      }
    }
    return true;
  }

  std::uint64_t events() const { return events_; }

  // Everything delivered: when, where, what, how marked.
  std::uint64_t trace_hash() const {
    std::uint64_t hash = 0;
    for (const Delivery& d : deliveries_) {
      hash = mix64(hash ^ static_cast<std::uint64_t>(d.at.count));
      for (std::size_t i = 0; i < d.recorded.hops; ++i) {
        const IntHop& hop = d.recorded.hop[i];
        hash = mix64(hash ^ (std::uint64_t{hop.queue_bytes} << 32 | hop.sent_bytes));
        hash = mix64(hash ^ (std::uint64_t{hop.time_ns} << 32 | hop.rate_mbps));
        hash ^= d.recorded.path;
      }
      hash = mix64(hash ^ (d.id << 24 | std::uint64_t{d.host} << 8 |
                           static_cast<std::uint64_t>(d.ecn) << 4 | d.flags));
    }
    return hash;
  }

 private:
  struct Item {
    Send what;
    std::uint64_t id = 0;
  };
  struct Host {
    std::deque<Item> script;
    std::array<std::deque<Item>, kTrafficClasses> ready;
  };

  static IntStack recorded(const Packet& p) {
    IntStack stack;
    if ((p.flags & packet_flag::telemetry) == 0) return stack;
    stack.hops = p.records;
    stack.path = p.path;
    for (std::size_t i = 0; i < stack.hops; ++i) {
      stack.hop[i] = wire::load_int_record(tail_of(p) + i * wire::kIntRecordBytes);
    }
    return stack;
  }

  void schedule(std::uint32_t index) {
    Host& host = hosts_[index];
    Picos next = host.script.empty() ? kNever : later(now_, host.script.front().what.at);
    Port& port = net_.host_port(index);
    for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
      if (host.ready[c].empty()) continue;
      const Picos at = port.tx_ready_at(c);
      if (at != kNever) next = earlier(next, later(at, now_));
    }
    wheel_.schedule(first_host_ + index, next);
  }

  void poll(std::uint32_t index) {
    Host& host = hosts_[index];
    Port& port = net_.host_port(index);
    std::array<Packet*, 4> burst{};
    while (const std::size_t n = port.rx(burst)) {
      for (std::size_t i = 0; i < n; ++i) {
        Packet& p = *burst[i];
        deliveries_.push_back(
            {p.time, index, p.digest, p.ecn, p.flags, p.traffic_class, recorded(p)});
        if (reply_ && p.payload_bytes != 0) {
          const auto from = std::to_integer<std::uint32_t>(p.header[28]) << 8 |
                            std::to_integer<std::uint32_t>(p.header[29]);
          Send ack{now_, index, from - 1, 0, kControlClass, Ecn::not_ect, 40000, 0x11};
          host.ready[kControlClass].push_back({ack, p.digest | std::uint64_t{1} << 40});
        }
        port.packets().free(&p);
      }
    }
    while (!host.script.empty() && host.script.front().what.at <= now_) {
      const Item item = host.script.front();
      host.script.pop_front();
      host.ready[item.what.traffic_class].push_back(item);
    }
    for (std::uint8_t c = kTrafficClasses; c-- > 0;) {
      while (!host.ready[c].empty()) {
        if (port.tx_ready_at(c) > now_) break;
        Packet* packet = build(host.ready[c].front());
        if (port.tx(now_, c, {&packet, 1}) == 0) {
          violation_ = "a port that said it was ready refused a packet";
          net_.pool().free(packet);
          break;
        }
        host.ready[c].pop_front();
      }
    }
    schedule(index);
  }

  Packet* build(const Item& item) {
    Packet* p = net_.pool().alloc();
    const Send& s = item.what;
    p->digest = item.id;
    p->payload_kind = s.payload == 0 ? PayloadKind::none : PayloadKind::elided;
    p->payload_bytes = s.payload;
    p->header_bytes = kLabHeaderBytes;
    p->bth_offset = 42;
    p->ecn = s.ecn;
    p->header.fill(std::byte{0});
    if (net_.spec().telemetry && s.payload != 0) {
      p->flags = packet_flag::telemetry;
      p->records = 0;
      p->path = 0;
    }
    const auto put16 = [p](std::size_t at, std::uint32_t value) {
      p->header[at] = static_cast<std::byte>(value >> 8 & 0xFF);
      p->header[at + 1] = static_cast<std::byte>(value & 0xFF);
    };
    put16(12, 0x0800);
    p->header[14] = std::byte{0x45};
    p->header[15] = static_cast<std::byte>(s.ecn);
    put16(16, 20U + 8 + 12 + s.payload + 4);
    p->header[22] = std::byte{64};
    p->header[23] = std::byte{17};
    const std::uint32_t base = net_.spec().subnet_base + 1;
    put16(26, (base + s.from) >> 16);
    put16(28, (base + s.from) & 0xFFFF);
    put16(30, (base + s.to) >> 16);
    put16(32, (base + s.to) & 0xFFFF);
    put16(34, s.source_port);
    put16(36, 4791);
    put16(38, 8U + 12 + s.payload + 4);
    p->header[42] = static_cast<std::byte>(s.opcode);
    return p;
  }

  EventWheel wheel_;
  Network net_;
  std::uint32_t first_host_;
  std::vector<Host> hosts_;
  std::vector<Delivery> deliveries_;
  Picos now_{0};
  Random looker_{99};
  std::uint64_t next_id_ = 1;
  std::uint64_t events_ = 0;
  std::uint64_t look_every_ = 0;
  std::uint64_t check_every_ = 0;
  bool reply_ = false;
  std::string violation_;
};

}  // namespace paceline::fabric
