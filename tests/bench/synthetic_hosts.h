// Hosts without a transport for the benchmarks of the bare fabric: they keep a window of packets in
// flight and acknowledge each.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/fabric/network.h"

namespace paceline::fabric {

// A window of packets per sender, one ACK per packet; senders and receivers are the same class.
class WindowHost {
 public:
  static constexpr std::size_t kHeaderBytes = 14 + 20 + 8 + 12 + 4;

  void start(Network& net, std::uint32_t self, std::uint32_t peer, std::uint16_t payload,
             std::uint32_t window_bytes) {
    net_ = &net;
    port_ = &net.host_port(self);
    self_ = self;
    payload_ = payload;
    window_ = window_bytes / payload;
    make_header(self, peer, data_header_);
    const std::uint32_t base = net.spec().subnet_base + 1;
    base_ = base;
  }

  // Returns when to poll again.
  Picos poll(Picos now) {
    std::array<Packet*, 8> burst;
    while (const std::size_t n = port_->rx(burst)) {
      for (std::size_t i = 0; i < n; ++i) {
        Packet* packet = burst[i];
        if (packet->payload_bytes == 0) {
          --in_flight_;
          net_->pool().free(packet);
          continue;
        }
        // The data packet turns round as its own ACK.
        std::array<std::byte, 4> address;
        std::memcpy(address.data(), &packet->header[26], 4);
        std::memcpy(&packet->header[26], &packet->header[30], 4);
        std::memcpy(&packet->header[30], address.data(), 4);
        packet->payload_bytes = 0;
        packet->payload_kind = PayloadKind::none;
        packet->ecn = Ecn::not_ect;
        packet->next = nullptr;
        if (acks_ == nullptr) {
          acks_ = packet;
        } else {
          last_ack_->next = packet;
        }
        last_ack_ = packet;
      }
      if (n < burst.size()) break;
    }
    Picos next = kNever;
    while (acks_ != nullptr) {
      Packet* packet = acks_;
      Packet* following = packet->next;
      if (port_->tx(now, kControlClass, {&packet, 1}) == 0) {
        return later(port_->tx_ready_at(kControlClass), now + Picos{1});
      }
      acks_ = following;
    }
    while (in_flight_ < window_) {
      const Picos ready = port_->tx_ready_at(kDefaultDataClass);
      if (ready > now) {
        next = ready;
        break;
      }
      Packet* packet = net_->pool().alloc();
      packet->payload_bytes = payload_;
      packet->payload_kind = PayloadKind::elided;
      packet->header_bytes = kHeaderBytes;
      packet->bth_offset = 42;
      packet->ecn = Ecn::ect0;
      std::memcpy(packet->header.data(), data_header_.data(), kHeaderBytes);
      port_->tx(now, kDefaultDataClass, {&packet, 1});
      ++in_flight_;
    }
    return next;
  }

 private:
  void make_header(std::uint32_t from, std::uint32_t to,
                   std::array<std::byte, kMaxHeaderBytes>& h) const {
    h.fill(std::byte{0});
    h[12] = std::byte{8};
    h[14] = std::byte{0x45};
    h[15] = std::byte{2};
    const auto put = [&h](std::size_t at, std::uint32_t v) {
      for (std::size_t i = 0; i < 4; ++i) h[at + i] = static_cast<std::byte>(v >> (24 - 8 * i));
    };
    put(26, net_->spec().subnet_base + 1 + from);
    put(30, net_->spec().subnet_base + 1 + to);
    put(34, 50'000U << 16 | 4791);
  }

  Network* net_ = nullptr;
  Port* port_ = nullptr;
  Packet* acks_ = nullptr;
  Packet* last_ack_ = nullptr;
  std::uint32_t self_ = 0;
  std::uint32_t base_ = 0;
  std::uint32_t window_ = 0;
  std::uint32_t in_flight_ = 0;
  std::uint16_t payload_ = 0;
  std::array<std::byte, kMaxHeaderBytes> data_header_{};
};

// A network of such hosts, run until so many hops.
class SyntheticRun {
 public:
  SyntheticRun(const FabricSpec& spec, unsigned slot_shift)
      : first_host_(Network::actors_needed(spec)),
        wheel_(first_host_ + spec.hosts, slot_shift),
        net_(spec, wheel_, 0),
        hosts_(spec.hosts) {}

  Network& net() { return net_; }
  void start(std::uint32_t host, std::uint32_t peer, std::uint16_t payload, std::uint32_t window) {
    hosts_[host].start(net_, host, peer, payload, window);
    if (window != 0) wheel_.schedule(first_host_ + host, Picos{0});
  }
  void until_hops(std::uint64_t hops) {
    Picos time{};
    std::uint32_t actor = 0;
    while (net_.stats().hops < hops && wheel_.pop(time, actor)) {
      if (actor >= first_host_) {
        wheel_.schedule(actor, hosts_[actor - first_host_].poll(time));
        continue;
      }
      net_.link_fired(actor, time);
      for (const std::uint32_t host : net_.woken_hosts()) {
        wheel_.schedule(first_host_ + host, hosts_[host].poll(time));
      }
      net_.clear_woken();
    }
    now_ = time;
  }
  Picos now() const { return now_; }

 private:
  std::uint32_t first_host_;
  EventWheel wheel_;
  Network net_;
  std::vector<WindowHost> hosts_;
  Picos now_{0};
};

}  // namespace paceline::fabric
