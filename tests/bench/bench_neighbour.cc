// What a packet costs in the port that resolves, each way, above what the port behind costs. Not a
// test: nothing is asserted.
//
//   build/release/tests/bench/bench_neighbour [--benchmark_filter=...]
#include <benchmark/benchmark.h>

#include <array>
#include <span>

#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/wire/packet/build.h"

namespace {

using namespace paceline;
using namespace paceline::neighbour;

constexpr std::size_t kBurst = 32;

// Takes what it gets and gives it back: the packets never leave their owner.
class MirrorPort final : public Port {
 public:
  MirrorPort() : pool_(64) {}
  std::size_t rx(std::span<Packet*> burst) override {
    const std::size_t n = std::min(burst.size(), burst_.size());
    for (std::size_t i = 0; i < n; ++i) burst[i] = burst_[i];
    return n;
  }
  std::size_t tx(Picos, std::uint8_t, std::span<Packet* const> burst) override {
    return burst.size();
  }
  Picos rx_ready_at() const override { return Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return {}; }
  void reflect(std::span<Packet* const> burst) { burst_ = burst; }

 private:
  PacketPool pool_;
  std::span<Packet* const> burst_;
};

struct Setup {
  explicit Setup(std::uint32_t destinations, bool tagged)
      : port(mirror, config(tagged), Random(1)) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      wire::FlowAddressing flow;
      flow.source = wire::IpAddress::v4(0x0A00'0001);
      flow.destination =
          wire::IpAddress::v4(0x0A00'0002 + static_cast<std::uint32_t>(i) % destinations);
      const wire::HeaderTemplate header = wire::make_header_template(flow);
      packets[i] = mirror.packets().alloc();
      packets[i]->header_bytes = static_cast<std::uint16_t>(
          wire::build_data(header, packets[i]->header, wire::TransportFields{}));
      packets[i]->payload_bytes = 0;
      packets[i]->payload_kind = PayloadKind::none;
      packets[i]->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    }
    port.poll(Picos{0});
  }
  static HostConfig config(bool tagged) {
    HostConfig config;
    config.mac = wire::MacAddress::local(1);
    config.addresses = {{wire::IpAddress::v4(0x0A00'0001), 24}};
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      config.fixed.push_back(
          {wire::IpAddress::v4(0x0A00'0002 + i), wire::MacAddress::local(2 + i)});
    }
    if (tagged) config.vlan_id = 5;
    config.announcements = 0;
    return config;
  }
  MirrorPort mirror;
  ResolvingPort port;
  std::array<Packet*, kBurst> packets{};
};

void per_packet(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBurst));
}

void send(benchmark::State& state) {
  Setup s(static_cast<std::uint32_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(s.port.tx(Picos{1}, 3, s.packets));
  per_packet(state);
}
BENCHMARK(send)->ArgNames({"destinations", "tagged"})->Args({1, 0})->Args({32, 0})->Args({32, 1});

void receive(benchmark::State& state) {
  Setup s(1, false);
  for (Packet* packet : s.packets) {  // to us
    s.port.tx(Picos{1}, 3, {&packet, 1});
    std::copy_n(wire::MacAddress::local(1).bytes.begin(), 6, packet->header.begin());
    wire::store_be32(packet->header.data() + 30, 0x0A00'0001);
  }
  s.mirror.reflect(s.packets);
  std::array<Packet*, kBurst> burst;
  for (auto _ : state) benchmark::DoNotOptimize(s.port.rx(burst));
  per_packet(state);
}
BENCHMARK(receive);

}  // namespace
