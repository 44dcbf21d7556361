// libFuzzer target for the transport's state machines: a live pair of engines, to which the input
// posts work, sends packets that parse (any opcode, numbers near those expected, any lengths, keys
// and syndromes, our control messages, whole or trimmed, with and without records of telemetry),
// has switches trim and record, changes and destroys queue pairs, and lets time pass, in any order.
// Promises: no assertion and no sanitizer complains, contexts agree with their queue
// pairs, every packet comes home, and afterwards a fresh pair of queue pairs moves bytes through
// the same engines. Seeds: tests/fuzz/corpus/engine.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tests/fuzz/engine_pair.h"
#include "tests/fuzz/forged_packets.h"
#include "tests/fuzz/fresh_pair.h"
#include "tests/fuzz/script_input.h"

namespace paceline::fuzz {
namespace {

using namespace transport;  // all of its vocabulary

constexpr std::size_t kMostCommands = 256;
constexpr std::size_t kMostPolls = 400;  // that one command may bring about

class Script {
 public:
  Script(Input& input, EnginePair& pair, bool forge)
      : in_(input), pair_(pair), forge_(forge), at_(input, pair), packets_(at_) {}

  void command() {
    const std::uint8_t c = in_.byte();
    at_.side = c >> 4 & 1U;
    at_.slot = c >> 5 & 3U;
    const bool switches = (c & 128U) != 0;  // have a hand in it
    switch (c & 15U) {
      case 0:
      case 1:
        post_send();
        break;
      case 2:
        post_receive();
        break;
      case 3:
      case 4:
      case 5:
        inject(switches ? packets_.after_switches(packets_.data()) : packets_.data());
        break;
      case 6:
        pair_.run(pair_.now + picos_from_nanos(1 + in_.byte()), kMostPolls);
        break;
      case 7:
        pair_.run(pair_.now + Picos{std::int64_t{1} << (in_.byte() % 38)}, kMostPolls);
        break;
      case 8:
        modify();
        break;
      case 9:
        pair_.make(at_.slot, in_.byte() < 128 ? 0xFF'FFF0U : in_.word() & 0xFF'FFFFU);
        break;
      case 10:
        switches ? set_switches() : set_weather();
        break;
      case 11:
        change_regions();
        break;
      case 12:
        at_.end().moody.late = in_.byte() % 2 != 0;
        for (const std::uint32_t qp : at_.end().qp) at_.end().engine.memory_ready(pair_.now, qp);
        at_.end().touched = true;
        break;
      case 13:
        change_handle();
        break;
      case 14:
        look();
        break;
      default:
        if (forge_) inject(packets_.control());
        break;
    }
  }

 private:
  void post_send() {
    WorkRequest r;
    r.wr_id = in_.byte();
    r.opcode = static_cast<WorkOpcode>(in_.byte() % 8);
    const std::uint8_t flags = in_.byte();
    r.signaled = (flags & 1U) == 0;
    r.fence = (flags & 2U) != 0;
    r.solicited = (flags & 4U) != 0;
    r.length = is_atomic(r.opcode) && (flags & 8U) == 0 ? kAtomicBytes : at_.length();
    r.local_address = at_.address();
    r.local_key = at_.key(at_.end());
    r.remote_address = at_.address();
    r.remote_key = at_.key(at_.other());
    r.address_handle = at_.end().handle + (flags & 16U);
    r.target_qp_number = at_.other().qp[3];
    r.target_qkey = EnginePair::kQkey;
    r.target_srq = at_.other().srq + (flags & 16U);
    std::array<Segment, 4> segments;
    std::array<std::byte, 64> inline_bytes{};
    if ((flags & 32U) != 0) {
      r.segment_count = in_.byte() % 5;
      for (unsigned i = 0; i < r.segment_count && i < 4; ++i) {
        segments[i] = {at_.address(), at_.length(), at_.key(at_.end())};
      }
      r.segments = segments.data();
      if (r.segment_count > 4) r.segment_count = 4;
    } else if ((flags & 64U) != 0) {
      r.inline_bytes = inline_bytes.data();
      r.length = std::min<std::uint64_t>(r.length, inline_bytes.size());
    }
    at_.end().engine.post_send(pair_.now, at_.qp(), r);
    at_.end().touched = true;
  }

  void post_receive() {
    ReceiveRequest r;
    r.wr_id = in_.byte();
    r.address = at_.address();
    r.length = at_.length();
    r.local_key = at_.key(at_.end());
    std::array<Segment, 2> segments;
    if (in_.byte() % 4 == 0) {
      for (Segment& s : segments) s = {at_.address(), at_.length(), at_.key(at_.end())};
      r.segments = segments.data();
      r.segment_count = 2;
    }
    if (pair_.is_xrc(at_.slot)) {
      at_.end().domain_receives.post(r);
    } else {
      at_.end().engine.post_receive(pair_.now, at_.qp(), r);
    }
  }

  void set_switches() {
    TrimmingSwitch& s = at_.end().last_switch;
    const std::uint8_t b = in_.byte();
    s.trim_every = b & 7U;
    s.hops = static_cast<std::uint16_t>((b >> 3U & 7U) % (kIntHops + 1));
    s.path = b >> 6U;
    s.queue_bytes = in_.byte() * 4096U;
  }

  void inject(Packet* packet) {
    for (auto& e : pair_.ends) e->last_switch.honest_peers = false;
    at_.end().port.inject(pair_.now, packet);
    at_.end().touched = true;
  }

  void modify() {
    QpAttributes a;
    a.state = static_cast<QpState>(in_.byte() % 7);
    const QpState from = at_.end().engine.view().state_of(at_.qp());
    const QpType type = pair_.type_of(at_.side, at_.slot);
    std::uint32_t mask = qp_attribute::state | transition_rule(type, from, a.state).required;
    const std::uint8_t extra = in_.byte();
    if ((extra & 1U) != 0) mask ^= 1U << (in_.byte() % qp_attribute::kCount);
    if ((extra & 2U) != 0) mask |= transition_rule(type, from, a.state).optional;
    a.notify_drained = (extra & 4U) != 0;
    a.access = in_.byte() & access::remote;
    a.qkey = EnginePair::kQkey;
    a.path.ip = EnginePair::ip_of((extra & 8U) != 0 ? 9 : 1 - at_.side);
    a.path.mac = wire::MacAddress::local(2 - at_.side);
    a.path.traffic_class = (extra & 16U) != 0 ? in_.byte() % 10 : kDefaultDataClass;
    a.path_mtu = static_cast<std::uint16_t>(256U << (in_.byte() % 4));
    a.timeout = picos_from_micros(in_.byte() % 64);
    a.retry_count = in_.byte() % 9;
    a.rnr_retry = in_.byte() % 9;
    a.min_rnr_timer = 1;
    a.max_rd_atomic = in_.byte() % 4;
    a.max_dest_rd_atomic = in_.byte() % 4;
    a.rq_psn = Psn(in_.byte());
    a.sq_psn = Psn(in_.byte());
    a.dest_qp_number = at_.other().qp[at_.slot];
    at_.end().engine.modify_qp(pair_.now, at_.qp(), a, mask);
    at_.end().touched = true;
  }

  void set_weather() {
    Impairments impairments;
    const std::uint8_t b = in_.byte();
    const auto share = [b](unsigned shift) { return (b >> shift & 3U) * 0.15; };
    impairments.drop = share(0);
    impairments.duplicate = share(2);
    impairments.reorder = share(4);
    impairments.corrupt = share(6);
    at_.end().weather.set(impairments);
  }

  void change_regions() {
    RegionTable& regions = at_.end().engine.regions();
    const std::uint8_t b = in_.byte();
    std::uint32_t& key = (b & 1U) != 0 ? at_.end().key : at_.end().moody_key;
    regions.remove(key);
    if ((b & 1U) != 0) {
      key = regions.add_plain(End::kBase, at_.end().memory, End::kAll);
    } else {
      key = regions.add_provided(End::kBase, End::kBytes, at_.end().moody, End::kAll);
    }
    if ((b & 2U) != 0) regions.invalidate(key, 0, 0);
    if ((b & 4U) == 0 || !pair_.is_xrc(at_.slot)) return;
    at_.end().engine.remove_domain_queue(pair_.now, at_.end().srq);
    pair_.add_domain_queue(at_.end());
    at_.end().touched = true;
  }

  void change_handle() {
    Engine& engine = at_.end().engine;
    if (engine.destroy_address_handle(pair_.now, at_.end().handle)) {
      QpPath path;
      path.ip = EnginePair::ip_of(in_.byte() % 4 == 0 ? 9 : 1 - at_.side);
      path.mac = wire::MacAddress::local(2 - at_.side);
      path.source_port = 0xC333;
      path.traffic_class = in_.byte() % kTrafficClasses;
      at_.end().handle = engine.create_address_handle(pair_.now, 0, path);
    }
    at_.end().touched = true;
  }

  void look() {
    std::array<Completion, 64> completions;
    std::array<AsyncEvent, 8> events;
    if (in_.byte() % 4 == 0) at_.end().engine.restart_congestion(pair_.now, at_.qp());
    at_.end().send_cq.poll(completions);
    at_.end().receive_cq.poll(completions);
    at_.end().engine.poll_events(events);
    at_.end().touched = true;
  }

  Input& in_;
  EnginePair& pair_;
  bool forge_;
  Corner at_;
  ForgedPackets packets_;
};

// With every queue pair gone nothing may run any more.
void all_quiet(EnginePair& pair) {
  for (auto& end : pair.ends) {
    end->moody.late = false;
    for (std::uint32_t& qp : end->qp) end->engine.destroy_qp(pair.now, std::exchange(qp, 0));
    promise(end->engine.destroy_address_handle(pair.now, end->handle),
            "an address handle is in use by nobody");
    end->touched = true;
  }
  pair.check();
  promise(pair.run(pair.now + picos_from_micros(10'000'000), 200'000),
          "engines without queue pairs do not come to rest");
  for (auto& end : pair.ends) {
    promise(end->engine.view().inflight_bytes() == 0, "bytes in flight without a queue pair");
    const std::uint64_t duplicates = end->weather.counters().duplicated;
    promise(end->engine.counters().rx_trimmed <= end->last_switch.trimmed() + duplicates,
            "an engine counts trimmed packets that no switch has trimmed");
  }
  for (auto& end : pair.ends) end->weather.take_back();
  promise(pair.pool.in_use() == 0, "packets are not home");
}

}  // namespace
}  // namespace paceline::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  fuzz::Input input({data, size});
  // The invariants of the algorithms hold among peers that tell the truth.
  const std::uint8_t how = input.byte();
  const bool forge = (how & 4U) != 0;
  using cc::AlgorithmId;
  constexpr AlgorithmId kAlgorithms[4][4] = {
      {AlgorithmId::fixed, AlgorithmId::dcqcn, AlgorithmId::cadence, AlgorithmId::cadence},
      {AlgorithmId::switch_notified, AlgorithmId::dcqcn, AlgorithmId::cadence, AlgorithmId::eqds},
      {AlgorithmId::hpcc, AlgorithmId::powertcp, AlgorithmId::hpcc, AlgorithmId::powertcp},
      {AlgorithmId::nscc, AlgorithmId::sird, AlgorithmId::homa, AlgorithmId::swift}};
  const bool telemetry = how >> 6 == 2;
  const bool xrc = (how & 48U) == 32;
  fuzz::EnginePair pair(kAlgorithms[how >> 6][how & 3U], telemetry, xrc,
                        [&](transport::EngineConfig& config) {
                          config.check_invariants = !forge;
                          config.ack_every = (how & 8U) != 0 ? 4 : 1;
                          if ((how & 16U) != 0)
                            config.reliability = transport::Reliability::selective;
                          if ((how & 48U) == 48) config.multipath = transport::Multipath::packet;
                        });
  for (std::size_t slot = 0; slot < fuzz::End::kSlots; ++slot) pair.make(slot, 0xFF'FFFA);
  fuzz::Script script(input, pair, forge);
  for (std::size_t i = 0; i < fuzz::kMostCommands && !input.empty(); ++i) {
    script.command();
    if (i % 8 == 7) pair.check();
  }
  pair.run(pair.now + picos_from_micros(50), fuzz::kMostPolls);
  pair.check();
  fuzz::fresh_pair_works(pair);
  pair.check();
  fuzz::all_quiet(pair);
  return 0;
}
