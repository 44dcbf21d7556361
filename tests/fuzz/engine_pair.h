// Two live engines on a cable for the state-machine fuzzer: small, cheap to make again for every
// input, and strict: whatever breaks a promise ends the process.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/transport/engine.h"
#include "tests/fuzz/trimming_switch.h"
#include "tests/soak/cable.h"

namespace paceline::fuzz {

using soak::CableEnd;
using transport::QpType;

// Answers later whenever `late` says so; then, once, in time.
class MoodyMemory final : public transport::MemoryProvider {
 public:
  explicit MoodyMemory(std::span<std::byte> memory) : memory_(memory) {}
  bool late = false;

  transport::MemoryResult read(const transport::MemoryCaller&, std::uint64_t offset,
                               std::span<std::byte> out) override {
    if (late) return transport::MemoryResult::pending;
    std::memcpy(out.data(), memory_.data() + offset, out.size());
    return transport::MemoryResult::done;
  }
  transport::MemoryResult write(const transport::MemoryCaller&, std::uint64_t offset,
                                std::span<const std::byte> in) override {
    if (late) return transport::MemoryResult::pending;
    std::memcpy(memory_.data() + offset, in.data(), in.size());
    return transport::MemoryResult::done;
  }
  transport::MemoryResult atomic(const transport::MemoryCaller&, std::uint64_t offset,
                                 const transport::AtomicOperation& operation,
                                 std::uint64_t& original) override {
    if (late) return transport::MemoryResult::pending;
    std::memcpy(&original, memory_.data() + offset, sizeof original);
    const std::uint64_t result = operation.result(original);
    std::memcpy(memory_.data() + offset, &result, sizeof result);
    return transport::MemoryResult::done;
  }

 private:
  std::span<std::byte> memory_;
};

struct End {
  static constexpr std::uint64_t kBase = 0x1'0000;
  static constexpr std::size_t kBytes = 16'384;  // that the input may play with
  static constexpr std::size_t kSlots = 4;       // RC, RC or XRC, UC, UD

  End(const PortInfo& info, PacketPool& pool, transport::EngineConfig config, unsigned index)
      : port(info, picos_from_nanos(500), pool, 0, Random(1, index)),
        last_switch(port),
        weather(last_switch, {}, Random(2, index)),
        engine(std::move(config), weather),
        memory(kBytes),
        moody(memory),
        key(engine.regions().add_plain(kBase, memory, kAll)),
        moody_key(engine.regions().add_provided(kBase, kBytes, moody, kAll)) {
    for (auto& queue : receives) {
      queue = std::make_unique<transport::ReceiveQueue>(16, transport::ReceiveSharing::owned, 4);
    }
  }
  static constexpr std::uint8_t kAll = transport::access::local_write | transport::access::remote |
                                       transport::access::remote_invalidate;

  CableEnd port;
  TrimmingSwitch last_switch;
  soak::BadWeather weather;
  transport::Engine engine;
  std::vector<std::byte> memory;
  MoodyMemory moody;
  std::uint32_t key;
  std::uint32_t moody_key;
  transport::CompletionQueue send_cq{256};
  transport::CompletionQueue receive_cq{256};
  std::array<std::unique_ptr<transport::ReceiveQueue>, kSlots> receives;
  std::array<std::uint32_t, kSlots> qp{};
  transport::ReceiveQueue domain_receives{16, transport::ReceiveSharing::shared, 4};
  std::uint32_t srq = 0;  // number of these
  std::uint32_t handle = 0;
  bool touched = false;
};

class EnginePair {
 public:
  static constexpr std::uint16_t kMtu = 1024;
  static constexpr std::uint32_t kQkey = 0x77;

  static constexpr std::uint32_t kDomain = 1;

  // telemetry: switches record, and selective repeat returns the records. xrc: slot 1 leads from an
  // initiator to a target. `unusual`: how the engines' configuration differs from the plain one.
  template <class Configure>
  EnginePair(cc::AlgorithmId algorithm, bool telemetry, bool xrc, Configure&& unusual) : xrc_(xrc) {
    PortInfo info;
    info.link_rate = rate_from_gbps(100);
    info.payload_room = kMtu + 64;
    info.tx_burst = 4;
    info.telemetry = telemetry;
    info.notices = algorithm == cc::AlgorithmId::switch_notified;
    transport::EngineConfig config;
    config.payload_mtu = kMtu;
    config.base_rtt_ns = 1300;
    if (telemetry) config.reliability = transport::Reliability::selective;
    config.primary = choose(algorithm, config, info);
    config.fallback = choose(cc::AlgorithmId::dcqcn, config, info);
    unusual(config);
    for (unsigned side = 0; side < 2; ++side) {
      config.address = ip_of(side);
      config.mac = wire::MacAddress::local(1 + side);
      ends[side] = std::make_unique<End>(info, pool, config, side);
    }
    ends[0]->port.join(ends[1]->port);
    ends[1]->port.join(ends[0]->port);
    for (auto& end : ends) add_domain_queue(*end);
  }
  ~EnginePair() {
    for (auto& end : ends) end->weather.take_back();
    for (auto& end : ends) end.reset();
    promise(pool.in_use() == 0, "packets are not home after the engines are gone");
  }

  static wire::IpAddress ip_of(unsigned side) { return wire::IpAddress::v4(0x0A00'0001 + side); }

  bool is_xrc(std::size_t slot) const { return xrc_ && slot == 1; }
  QpType type_of(unsigned side, std::size_t slot) const {
    constexpr QpType kTypes[] = {QpType::rc, QpType::rc, QpType::uc, QpType::ud};
    if (is_xrc(slot)) return side == 0 ? QpType::xrc_initiator : QpType::xrc_target;
    return kTypes[slot];
  }
  // It is there for a target, whether there is one or not.
  void add_domain_queue(End& end) {
    end.srq = end.engine.add_domain_queue({&end.domain_receives, &end.receive_cq, 0, kDomain});
  }

  transport::QpConfig qp_config(unsigned side, std::size_t slot) {
    transport::QpConfig config;
    config.type = type_of(side, slot);
    config.domain = kDomain;
    config.qkey = kQkey;
    config.send_cq = &ends[side]->send_cq;
    config.receive_cq = &ends[side]->receive_cq;
    if (!is_xrc(slot)) config.receive_queue = ends[side]->receives[slot].get();
    config.send_queue_depth = 16;
    config.max_rd_atomic = config.max_dest_rd_atomic = 2;
    config.max_send_segments = 4;
    config.max_inline = 64;
    config.retry_count = 3;
    config.rnr_retry = 3;
    config.min_rnr_timer = 1;
    config.path_mtu = slot == 1 ? 256 : 0;
    config.retransmit_timeout = picos_from_micros(20);
    return config;
  }

  bool telemetry() const { return ends[0]->port.info().telemetry; }

  // A fresh queue pair in the slot of both ends, ready to send.
  void make(std::size_t slot, std::uint32_t first_psn) {
    for (unsigned side = 0; side < 2; ++side) {
      End& end = *ends[side];
      if (end.qp[slot] != 0) end.engine.destroy_qp(now, end.qp[slot]);
      end.qp[slot] = end.engine.create_qp(qp_config(side, slot));
      end.touched = true;
    }
    for (unsigned side = 0; side < 2; ++side) {
      End& end = *ends[side];
      if (slot == 3) {
        make_datagrams(side);
        continue;
      }
      const End& other = *ends[1 - side];
      const auto peer = other.engine.address_of(other.qp[slot], Psn(first_psn + 1000 * (1 - side)));
      promise(end.engine.connect(now, end.qp[slot], peer, Psn(first_psn + 1000 * side), 0xC123),
              "a fresh queue pair does not connect");
    }
  }

  // Runs until `until`, or nothing is left to happen; at most so many polls.
  bool run(Picos until, std::size_t polls) {
    for (; polls != 0; --polls) {
      Picos next = kNever;
      std::array<Picos, 2> due;
      for (unsigned side = 0; side < 2; ++side) {
        End& end = *ends[side];
        due[side] =
            end.touched
                ? now
                : later(now, earlier(end.engine.next_deadline(), end.weather.rx_ready_at()));
        next = earlier(next, due[side]);
      }
      if (next == kNever) return true;
      if (next > until) break;
      now = next;
      for (unsigned side = 0; side < 2; ++side) {
        if (due[side] <= now) poll(side);
      }
    }
    now = later(now, until < kNever ? until : now);
    return false;
  }

  void check() {
    for (auto& end : ends) {
      const std::string broken = end->engine.view().check_conservation();
      if (!broken.empty()) wrong(broken);
      if (!end->engine.view().violation().empty()) wrong(end->engine.view().violation());
    }
  }

  Picos now{0};
  PacketPool pool{64, kMtu + 64, true, 0, *std::pmr::new_delete_resource(), true};
  std::array<std::unique_ptr<End>, 2> ends;

 private:
  bool xrc_;

  void poll(unsigned side) {
    End& end = *ends[side];
    end.touched = false;
    end.port.set_now(now);
    end.engine.poll(now);
    promise(end.engine.next_deadline() > now, "next_deadline() is not later than the poll");
  }

  void make_datagrams(unsigned side) {
    End& end = *ends[side];
    transport::QpAttributes a;
    a.qkey = kQkey;
    using transport::QpState;
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      a.state = to;
      const auto rule =
          transport::transition_rule(QpType::ud, end.engine.view().state_of(end.qp[3]), to);
      promise(
          end.engine.modify_qp(now, end.qp[3], a, rule.required | transport::qp_attribute::state)
              .ok(),
          "a fresh UD queue pair does not become ready");
    }
    if (end.handle != 0) return;
    transport::QpPath path;
    path.ip = ip_of(1 - side);
    path.mac = wire::MacAddress::local(2 - side);
    path.source_port = 0xC222;
    end.handle = end.engine.create_address_handle(now, 0, path);
  }

  static transport::CcChoice choose(cc::AlgorithmId id, const transport::EngineConfig& config,
                                    const PortInfo& info) {
    cc::PortFacts facts;
    facts.link_rate = info.link_rate;
    facts.mtu_bytes = config.payload_mtu;
    facts.full_packet_bytes = info.wire.wire_bytes(
        transport::EngineCore::kPlainHeaderBytes + config.payload_mtu + 8, config.payload_mtu);
    facts.base_rtt_ns = config.base_rtt_ns;
    facts.telemetry = info.telemetry;
    auto resolved = cc::resolve_params(*cc::find(id), "", {}, facts);
    if (std::get_if<std::vector<cc::ParamError>>(&resolved) != nullptr) wrong("no parameters");
    return {id, std::get<std::vector<double>>(std::move(resolved))};
  }
};

}  // namespace paceline::fuzz
