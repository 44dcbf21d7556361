// What a packet-hop costs in event wheel, links and switch, without a transport: synthetic hosts
// that keep a window of packets in flight and acknowledge each. One hop is one link transmission,
// ACKs included. Beside it the wheel against std::priority_queue on the same load.
//
//   bench_fabric --benchmark_min_time=1
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <queue>
#include <vector>

#include "dataplane/base/event_wheel.h"
#include "dataplane/base/random.h"
#include "dataplane/fabric/network.h"

namespace paceline::fabric {
namespace {

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

class Run {
 public:
  Run(const FabricSpec& spec, unsigned slot_shift)
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

// range(0): payload; range(1): slot shift.
void incast(benchmark::State& state) {
  constexpr std::uint32_t kHosts = 64;
  FabricSpec spec = star(kHosts, rate_from_gbps(100), picos_from_micros(1));
  const auto payload = static_cast<std::uint16_t>(state.range(0));
  Run run(spec, static_cast<unsigned>(state.range(1)));
  run.start(0, 1, payload, 0);
  for (std::uint32_t host = 1; host < kHosts; ++host) run.start(host, 0, payload, 160'000);
  run.until_hops(200'000);
  constexpr std::uint64_t kStep = 500'000;
  std::uint64_t hops = run.net().stats().hops;
  const std::uint64_t first = hops;
  for (auto _ : state) run.until_hops(hops += kStep);
  const auto done = static_cast<double>(run.net().stats().hops - first);
  state.counters["hops/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["ns/hop"] =
      benchmark::Counter(done * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  if (const auto wrong = run.net().check_conservation(); !wrong.empty()) {
    state.SkipWithError(wrong.c_str());
  }
}
BENCHMARK(incast)
    ->ArgsProduct({{4096, 1024}, {12, 13, 14, 15, 16, 17}})
    ->Unit(benchmark::kMillisecond);

// A leaf-spine fabric, permutation traffic. range(0): hosts (16 per leaf, 8 spines), range(1):
// shift.
void permutation(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t kPerLeaf = 16, kSpines = 16;
  FabricSpec spec;
  spec.hosts = hosts;
  const std::uint32_t leaves = hosts / kPerLeaf;
  spec.switches = leaves + kSpines;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    spec.links.push_back({h, hosts + h / kPerLeaf, rate_from_gbps(100), picos_from_micros(1)});
  }
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < kSpines; ++spine) {
      spec.links.push_back(
          {hosts + leaf, hosts + leaves + spine, rate_from_gbps(100), picos_from_micros(1)});
    }
  }
  Run run(spec, static_cast<unsigned>(state.range(1)));
  for (std::uint32_t h = 0; h < hosts; ++h) {
    run.start(
        h, (h + hosts / 2 + h % 7) % hosts == h ? (h + 1) % hosts : (h + hosts / 2 + h % 7) % hosts,
        4096, 160'000);
  }
  run.until_hops(400'000);
  constexpr std::uint64_t kStep = 500'000;
  std::uint64_t hops = run.net().stats().hops;
  const std::uint64_t first = hops;
  for (auto _ : state) run.until_hops(hops += kStep);
  const auto done = static_cast<double>(run.net().stats().hops - first);
  state.counters["hops/s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["ns/hop"] =
      benchmark::Counter(done * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["hops/us"] = done / (static_cast<double>(run.now().count) * 1e-6);
}
BENCHMARK(permutation)->ArgsProduct({{64, 1024}, {8, 10, 12, 14}})->Unit(benchmark::kMillisecond);

constexpr double kMeanDelayUs = 63.4;

// The load of a queue of `actors` entries, each rescheduled when popped by what a link or a host
// would: a small packet, a large one, a propagation delay, and at times half a millisecond.
Picos next_delay(Random& random) {
  const std::uint64_t r = random.next();
  const std::int64_t jitter = static_cast<std::int64_t>(r >> 54);
  switch (r & 7) {
    case 0:
      return Picos{7'000 + jitter};
    case 1:
      return Picos{500'000'000 + jitter};
    case 2:
    case 3:
      return Picos{333'600 + jitter};
    default:
      return Picos{1'340'000 + jitter};
  }
}

void wheel_hold(benchmark::State& state) {
  const auto actors = static_cast<std::uint32_t>(state.range(0));
  EventWheel wheel(actors, EventWheel::slot_shift_for(static_cast<double>(actors) / kMeanDelayUs));
  Random random(1);
  for (std::uint32_t i = 0; i < actors; ++i) wheel.schedule(i, next_delay(random));
  Picos time{};
  std::uint32_t actor = 0;
  for (auto _ : state) {
    wheel.pop(time, actor);
    wheel.schedule(actor, time + next_delay(random));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(wheel_hold)->Arg(192)->Arg(4096)->Arg(65536);

void priority_queue_hold(benchmark::State& state) {
  using Entry = std::pair<std::int64_t, std::uint32_t>;
  const auto actors = static_cast<std::uint32_t>(state.range(0));
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  Random random(1);
  for (std::uint32_t i = 0; i < actors; ++i) queue.emplace(next_delay(random).count, i);
  for (auto _ : state) {
    const auto [time, actor] = queue.top();
    queue.pop();
    queue.emplace(time + next_delay(random).count, actor);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(priority_queue_hold)->Arg(192)->Arg(4096)->Arg(65536);

}  // namespace
}  // namespace paceline::fabric
