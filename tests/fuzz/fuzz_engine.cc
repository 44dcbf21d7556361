// libFuzzer target for the transport's state machines: a live pair of engines, to which the input
// posts work, sends packets that parse (any opcode, numbers near those expected, any lengths, keys
// and syndromes, our control messages, whole or trimmed, with and without records of telemetry),
// has switches trim and record, changes and destroys queue pairs, and lets time pass, in any order.
// Promises: no assertion and no sanitizer complains, contexts agree with their queue
// pairs, every packet comes home, and afterwards a fresh pair of queue pairs moves bytes through
// the same engines. Seeds: tests/fuzz/corpus/engine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/control.h"
#include "dataplane/wire/int_record.h"
#include "dataplane/wire/xack.h"
#include "tests/fuzz/engine_pair.h"
#include "tests/soak/pattern.h"

namespace paceline::fuzz {
namespace {

using namespace transport;  // all of its vocabulary

constexpr std::size_t kMostCommands = 256;
constexpr std::size_t kMostPolls = 400;  // that one command may bring about

// What the input still holds; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }
  std::uint32_t word() {
    std::uint32_t w = 0;
    for (int i = 0; i < 4; ++i) w = w << 8 | byte();
    return w;
  }
  template <class T, std::size_t n>
  T pick(const T (&list)[n]) {
    return list[byte() % n];
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

class Script {
 public:
  Script(Input& input, EnginePair& pair, bool forge) : in_(input), pair_(pair), forge_(forge) {}

  void command() {
    const std::uint8_t c = in_.byte();
    side_ = c >> 4 & 1U;
    slot_ = c >> 5 & 3U;
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
        inject(switches ? after_switches(data_packet()) : data_packet());
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
        pair_.make(slot_, in_.byte() < 128 ? 0xFF'FFF0U : in_.word() & 0xFF'FFFFU);
        break;
      case 10:
        switches ? set_switches() : set_weather();
        break;
      case 11:
        change_regions();
        break;
      case 12:
        end().moody.late = in_.byte() % 2 != 0;
        for (const std::uint32_t qp : end().qp) end().engine.memory_ready(pair_.now, qp);
        end().touched = true;
        break;
      case 13:
        change_handle();
        break;
      case 14:
        look();
        break;
      default:
        if (forge_) inject(control_packet());
        break;
    }
  }

 private:
  static constexpr std::uint32_t kMtu = EnginePair::kMtu;

  End& end() { return *pair_.ends[side_]; }
  End& other() { return *pair_.ends[1 - side_]; }
  std::uint32_t qp() { return end().qp[slot_]; }

  std::uint64_t length() {
    const std::uint64_t list[] = {0,        1,    8,        255,          256,         257,
                                  kMtu - 1, kMtu, kMtu + 1, 3 * kMtu + 5, End::kBytes, in_.byte()};
    return in_.pick(list);
  }
  std::uint64_t address() {
    const std::uint64_t list[] = {0, 8, 3, End::kBytes - 8, End::kBytes / 2, ~std::uint64_t{0} - 4};
    return End::kBase + in_.pick(list);
  }
  std::uint32_t key(const End& of) {
    const std::uint32_t list[] = {of.key, of.key, of.moody_key, of.key + 1, 0};
    return in_.pick(list);
  }

  void post_send() {
    WorkRequest r;
    r.wr_id = in_.byte();
    r.opcode = static_cast<WorkOpcode>(in_.byte() % 8);
    const std::uint8_t flags = in_.byte();
    r.signaled = (flags & 1U) == 0;
    r.fence = (flags & 2U) != 0;
    r.solicited = (flags & 4U) != 0;
    r.length = is_atomic(r.opcode) && (flags & 8U) == 0 ? kAtomicBytes : length();
    r.local_address = address();
    r.local_key = key(end());
    r.remote_address = address();
    r.remote_key = key(other());
    r.address_handle = end().handle + (flags & 16U);
    r.target_qp_number = other().qp[3];
    r.target_qkey = EnginePair::kQkey;
    std::array<Segment, 4> segments;
    std::array<std::byte, 64> inline_bytes{};
    if ((flags & 32U) != 0) {
      r.segment_count = in_.byte() % 5;
      for (unsigned i = 0; i < r.segment_count && i < 4; ++i) {
        segments[i] = {address(), length(), key(end())};
      }
      r.segments = segments.data();
      if (r.segment_count > 4) r.segment_count = 4;
    } else if ((flags & 64U) != 0) {
      r.inline_bytes = inline_bytes.data();
      r.length = std::min<std::uint64_t>(r.length, inline_bytes.size());
    }
    end().engine.post_send(pair_.now, qp(), r);
    end().touched = true;
  }

  void post_receive() {
    ReceiveRequest r;
    r.wr_id = in_.byte();
    r.address = address();
    r.length = length();
    r.local_key = key(end());
    std::array<Segment, 2> segments;
    if (in_.byte() % 4 == 0) {
      for (Segment& s : segments) s = {address(), length(), key(end())};
      r.segments = segments.data();
      r.segment_count = 2;
    }
    end().engine.post_receive(pair_.now, qp(), r);
  }

  wire::HeaderTemplate header_to_here(std::uint8_t flags) {
    wire::FlowAddressing flow;
    flow.source = EnginePair::ip_of((flags & 1U) != 0 ? 7 : 1 - side_);
    flow.destination = EnginePair::ip_of(side_);
    flow.source_mac = wire::MacAddress::local(2 - side_);
    flow.destination_mac = wire::MacAddress::local(1 + side_);
    flow.dscp = wire::kDefaultDscpMap.dscp(static_cast<std::uint8_t>(flags >> 5));
    flow.ecn = (flags & 2U) != 0 ? Ecn::ce : Ecn::ect0;
    return wire::make_header_template(flow);
  }

  // A packet as a peer might send it: right in its form, anything in its meaning.
  Packet* data_packet() {
    Packet* packet = pair_.pool.alloc();
    const std::uint8_t flags = in_.byte();
    const auto opcode = static_cast<wire::Opcode>(opcode_byte());
    const wire::OpcodeProperties& row = wire::properties(opcode);
    const bool known = row.known() && !row.is_control();
    wire::TransportFields f;
    f.opcode = known ? opcode : wire::Opcode::rc_send_only;
    f.dest_qpn = (flags & 4U) != 0 && in_.byte() == 0 ? in_.word() & 0xFF'FFFFU : qp();
    const auto attributes = end().engine.query_qp(qp());
    const bool response = row.is_response();
    const Psn near = !attributes ? Psn(0) : response ? attributes->sq_psn : attributes->rq_psn;
    f.psn = Psn((near.value() + static_cast<std::uint32_t>(static_cast<std::int8_t>(in_.byte()))) &
                0xFF'FFFFU);
    f.ack_request = (flags & 8U) != 0;
    f.solicited = (flags & 16U) != 0;
    f.becn = in_.byte() == 1;
    const bool payload = !known || row.carries_payload();
    f.payload_bytes =
        payload ? static_cast<std::uint32_t>(std::min<std::uint64_t>(length(), kMtu + 60)) : 0;
    if (f.opcode == wire::Opcode::xack) {
      finish(*packet, xack_packet(header_to_here(flags & 0xE3U), *packet, near, f));
      return packet;
    }
    wire::Extensions ext{};
    ext.reth = {address(), key(end()), reth_length()};
    ext.atomic = {address(), key(end()), in_.byte(), in_.byte()};
    ext.aeth = {static_cast<std::uint8_t>(in_.byte()), in_.byte()};
    ext.immediate = 5;
    ext.invalidate_rkey = key(end());
    ext.deth = {in_.byte() % 8 == 0 ? 1 : EnginePair::kQkey, other().qp[3]};
    const wire::HeaderTemplate header = header_to_here(flags & 0xE3U);
    packet->header_bytes = static_cast<std::uint16_t>(
        wire::build_packet(header, wire::HeaderBuffer{packet->header}, f, ext));
    packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    if (!known) packet->header[header.bth_offset()] = static_cast<std::byte>(opcode);
    const std::uint32_t padded = (f.payload_bytes + 3U) & ~3U;
    packet->payload_kind = padded == 0 ? PayloadKind::none : PayloadKind::owned;
    packet->payload_bytes = static_cast<std::uint16_t>(padded);
    std::memset(packet->payload, 0x5C, padded);
    packet->ecn = (flags & 2U) != 0 ? Ecn::ce : Ecn::ect0;
    packet->icrc = wire::icrc(packet->header_view(), header.l3_offset, packet->payload_view());
    return packet;
  }

  // An extended acknowledgement, of what may be under way or not.
  std::size_t xack_packet(const wire::HeaderTemplate& header, Packet& packet, Psn near,
                          const wire::TransportFields& f) {
    wire::Xack x;
    x.aeth = {in_.byte(), in_.byte()};
    x.trigger = near + in_.byte();
    x.trigger_port = 0xC123;
    x.bitmap_offset = in_.byte() < 200 ? 0 : in_.byte();
    for (std::uint64_t& word : x.bitmap) word = std::uint64_t{in_.word()} << 32 | in_.word();
    x.trimmed = f.solicited;
    std::array<std::byte, kIntHops * wire::kIntRecordBytes> records;
    if (pair_.telemetry()) {
      x.records = std::span(records).first(any_records(records.data()) * wire::kIntRecordBytes);
      x.path = in_.byte() % 4;
    }
    return wire::build_xack(header, wire::HeaderBuffer{packet.header}, f.dest_qpn, f.psn, x);
  }

  // What a switch may have put into a packet, or anybody into an XACK: how many records there are.
  std::uint16_t any_records(std::byte* out) {
    const auto count = static_cast<std::uint16_t>(in_.byte() % (kIntHops + 1));
    for (std::uint16_t i = 0; i < count; ++i) {
      IntHop hop;
      const std::uint32_t rates[] = {TrimmingSwitch::kRateMbps, 1, 0, 0xFF'FFFF};
      hop.rate_mbps = in_.pick(rates);
      hop.queue_bytes = in_.byte() % 2 == 0 ? in_.byte() * 1024U : ~0U;
      hop.sent_bytes = in_.word();
      hop.time_ns = in_.word();
      wire::store_int_record(out + i * wire::kIntRecordBytes, hop);
    }
    return count;
  }

  // As a packet arrives that has passed switches which trim it, record, or both.
  Packet* after_switches(Packet* packet) {
    const std::uint8_t how = in_.byte();
    if ((how & 1U) != 0 && pair_.telemetry() && packet->header_bytes <= kMaxHeaderBytes) {
      packet->flags |= packet_flag::telemetry;
      packet->records = any_records(tail_of(*packet)) & 7U;
      packet->path = (how >> 4U) & 0xFU;
    }
    if ((how & 2U) != 0 && packet->payload_bytes != 0) {
      trim(*packet, end().port.info().wire);
      end().last_switch.count_trimmed();
    } else if ((how & 4U) != 0) {
      // Of that mark, too, anything: it has no payload to lose, or keeps it.
      packet->flags |= packet_flag::trimmed;
      end().last_switch.count_trimmed();
    }
    return packet;
  }

  void set_switches() {
    TrimmingSwitch& s = end().last_switch;
    const std::uint8_t b = in_.byte();
    s.trim_every = b & 7U;
    s.hops = static_cast<std::uint16_t>((b >> 3U & 7U) % (kIntHops + 1));
    s.path = b >> 6U;
    s.queue_bytes = in_.byte() * 4096U;
  }

  // A packet of headers alone.
  static void finish(Packet& packet, std::size_t header_bytes) {
    packet.header_bytes = static_cast<std::uint16_t>(header_bytes);
    packet.bth_offset = wire::kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes;
    packet.payload_kind = PayloadKind::none;
    packet.payload_bytes = 0;
    packet.icrc = wire::icrc(packet.header_view(), wire::kEthernetBytes);
  }

  // Most opcodes mean nothing: those that do come up more often.
  std::uint8_t opcode_byte() {
    const std::uint8_t b = in_.byte();
    if (b >= 0xE8 && b < 0xF0) return static_cast<std::uint8_t>(wire::Opcode::xack);
    if (b >= 0xF0) return in_.byte();
    if (b < 0x80) return b & 0x1F;  // RC
    return b < 0xA0 ? b & 0x3F : b < 0xC0 ? 0x20 + (b & 0x0F) : b < 0xD8 ? 0x64 + b % 2 : 0x81;
  }

  std::uint32_t reth_length() {
    const std::uint32_t list[] = {
        0, 1, 8, kMtu, kMtu + 1, 3 * kMtu, End::kBytes, 0x8000'0001U, 0xFFFF'FFFFU, in_.byte()};
    return in_.pick(list);
  }

  Packet* control_packet() {
    Packet* packet = pair_.pool.alloc();
    const std::uint8_t kind = in_.byte();
    const wire::HeaderTemplate header = header_to_here(kind & 0xE0U);
    const wire::HeaderBuffer out{packet->header};
    const Psn sequence(in_.byte());
    const auto traffic_class =
        static_cast<std::uint8_t>(in_.byte() % 2 == 0 ? kDefaultDataClass : 1);
    std::size_t bytes = 0;
    switch (kind % 4) {
      case 0: {
        HelloMessage m;
        m.reply = in_.byte() % 2 != 0;
        m.traffic_class = traffic_class;
        m.features = in_.byte();
        m.version_max = in_.byte();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
      case 1: {
        RequestMessage m;
        m.traffic_class = traffic_class;
        m.close = in_.byte() % 4 == 0;
        m.echo_wanted = static_cast<EcnEcho>(in_.byte() % 3);
        m.channel = in_.byte() % 3;
        m.req_seq = in_.byte();
        m.grant_echo = in_.byte();
        m.sent_total = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.unscheduled_total = in_.word();
        m.demand_bytes = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.tx_cap_mbps = in_.word();
        m.timestamp_ns = in_.word();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
      case 2: {
        GrantMessage m;
        m.traffic_class = traffic_class;
        const std::uint8_t flags = in_.byte();
        m.hold = (flags & 1U) != 0;
        m.revoke = (flags & 2U) != 0;
        m.queue_us = flags;
        m.channel = in_.byte() % 3;
        m.grant_seq = in_.byte();
        m.rate_mbps = in_.word();
        m.limit_total = std::uint64_t{in_.word()} << (in_.byte() % 17);
        m.lease_us = in_.byte() < 250 ? in_.byte() : in_.word();
        m.effective_delay_us = in_.byte() < 250 ? 0 : in_.word();
        m.unscheduled_budget = in_.word();
        m.active_senders = in_.byte();
        m.priority = m.active_senders % 8;
        m.timestamp_echo_ns = in_.word();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
      default: {
        PathMessage m;
        m.traffic_class = traffic_class;
        m.channel = in_.byte() % 3;
        m.seq = in_.byte();
        m.alpha_q16 = static_cast<std::uint16_t>(in_.word());
        m.quick_adapt_mbps = in_.byte() % 2 == 0 ? 0 : in_.word();
        bytes = wire::build_control(header, out, sequence, m);
        break;
      }
    }
    finish(*packet, bytes);
    return packet;
  }

  void inject(Packet* packet) {
    for (auto& e : pair_.ends) e->last_switch.honest_peers = false;
    end().port.inject(pair_.now, packet);
    end().touched = true;
  }

  void modify() {
    QpAttributes a;
    a.state = static_cast<QpState>(in_.byte() % 7);
    const QpState from = end().engine.state_of(qp());
    constexpr QpType kTypes[] = {QpType::rc, QpType::rc, QpType::uc, QpType::ud};
    std::uint32_t mask =
        qp_attribute::state | transition_rule(kTypes[slot_], from, a.state).required;
    const std::uint8_t extra = in_.byte();
    if ((extra & 1U) != 0) mask ^= 1U << (in_.byte() % qp_attribute::kCount);
    if ((extra & 2U) != 0) mask |= transition_rule(kTypes[slot_], from, a.state).optional;
    a.notify_drained = (extra & 4U) != 0;
    a.access = in_.byte() & access::remote;
    a.qkey = EnginePair::kQkey;
    a.path.ip = EnginePair::ip_of((extra & 8U) != 0 ? 9 : 1 - side_);
    a.path.mac = wire::MacAddress::local(2 - side_);
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
    a.dest_qp_number = other().qp[slot_];
    end().engine.modify_qp(pair_.now, qp(), a, mask);
    end().touched = true;
  }

  void set_weather() {
    Impairments impairments;
    const std::uint8_t b = in_.byte();
    const auto share = [b](unsigned shift) { return (b >> shift & 3U) * 0.15; };
    impairments.drop = share(0);
    impairments.duplicate = share(2);
    impairments.reorder = share(4);
    impairments.corrupt = share(6);
    end().weather.set(impairments);
  }

  void change_regions() {
    RegionTable& regions = end().engine.regions();
    const std::uint8_t b = in_.byte();
    std::uint32_t& key = (b & 1U) != 0 ? end().key : end().moody_key;
    regions.remove(key);
    if ((b & 1U) != 0) {
      key = regions.add_plain(End::kBase, end().memory, End::kAll);
    } else {
      key = regions.add_provided(End::kBase, End::kBytes, end().moody, End::kAll);
    }
    if ((b & 2U) != 0) regions.invalidate(key, 0, 0);
  }

  void change_handle() {
    Engine& engine = end().engine;
    if (engine.destroy_address_handle(pair_.now, end().handle)) {
      QpPath path;
      path.ip = EnginePair::ip_of(in_.byte() % 4 == 0 ? 9 : 1 - side_);
      path.mac = wire::MacAddress::local(2 - side_);
      path.source_port = 0xC333;
      path.traffic_class = in_.byte() % kTrafficClasses;
      end().handle = engine.create_address_handle(pair_.now, 0, path);
    }
    end().touched = true;
  }

  void look() {
    std::array<Completion, 64> completions;
    std::array<AsyncEvent, 8> events;
    if (in_.byte() % 4 == 0) end().engine.restart_congestion(pair_.now, qp());
    end().send_cq.poll(completions);
    end().receive_cq.poll(completions);
    end().engine.poll_events(events);
    end().touched = true;
  }

  Input& in_;
  EnginePair& pair_;
  bool forge_;
  unsigned side_ = 0;
  std::size_t slot_ = 0;
};

// Two fresh queue pairs, in a protection domain and class that no input has touched, move bytes
// both ways by every verb.
void fresh_pair_works(EnginePair& pair) {
  constexpr std::uint32_t kDomain = 0x77;
  constexpr std::uint64_t kBase = 0x9000'0000;
  constexpr std::uint64_t kPart = 4096;
  constexpr std::uint64_t kLength = 900;
  struct FreshEnd {
    std::vector<std::byte> memory = std::vector<std::byte>(8 * kPart);
    CompletionQueue sent{64};
    CompletionQueue received{64};
    ReceiveQueue receives{16, ReceiveSharing::owned};
    std::uint32_t key = 0;
    std::uint32_t qp = 0;
  };
  std::array<FreshEnd, 2> fresh;
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    Engine& engine = pair.ends[side]->engine;
    pair.ends[side]->weather.set({});
    pair.ends[side]->last_switch.trim_every = 0;
    f.key = engine.regions().add_plain(kBase, f.memory, End::kAll, kDomain);
    QpConfig config = pair.qp_config(side, 1);
    config.pd = kDomain;
    config.traffic_class = 5;
    config.send_cq = &f.sent;
    config.receive_cq = &f.received;
    config.receive_queue = &f.receives;
    // Longer than receivers take to reclaim what they granted to peers that lied.
    config.retransmit_timeout = picos_from_micros(1000);
    config.retry_count = 100;
    config.rnr_retry = 7;
    f.qp = engine.create_qp(config);
    // The parts of the memory: SEND, WRITE and READ of this end, in both memories alike.
    for (unsigned verb = 0; verb < 3; ++verb) {
      FreshEnd& source = verb == 2 ? fresh[1 - side] : f;
      soak::fill_pattern(std::span(source.memory).subspan((4 * side + verb) * kPart, kLength),
                         10 * side + verb, 0);
    }
  }
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    FreshEnd& peer = fresh[1 - side];
    End& end = *pair.ends[side];
    const QpAddress remote =
        pair.ends[1 - side]->engine.address_of(peer.qp, Psn(0xFF'FFFE - (1 - side)));
    promise(end.engine.connect(pair.now, f.qp, remote, Psn(0xFF'FFFE - side), 0xC777),
            "a fresh pair does not connect");
    promise(end.engine.post_receive(pair.now, f.qp,
                                    {1, kBase + 4 * (1 - side) * kPart, kLength, f.key}),
            "a fresh pair takes no receive");
    for (unsigned verb = 0; verb < 4; ++verb) {
      constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send_imm, WorkOpcode::write, WorkOpcode::read,
                                         WorkOpcode::fetch_add};
      WorkRequest r;
      r.wr_id = verb;
      r.opcode = kOpcodes[verb];
      r.length = verb == 3 ? kAtomicBytes : kLength;
      r.swap_add = 41;
      r.local_address = r.remote_address = kBase + (4 * side + verb) * kPart;
      r.local_key = f.key;
      r.remote_key = peer.key;
      promise(end.engine.post_send(pair.now, f.qp, r) == PostResult::ok,
              "a fresh pair takes no work");
    }
    end.touched = true;
  }
  const Picos limit = pair.now + picos_from_micros(200'000);
  while (fresh[0].sent.size() + fresh[1].sent.size() < 8) {
    promise(pair.now < limit, "a fresh pair does not get its work done");
    if (pair.run(pair.now + picos_from_micros(100), 20'000)) break;
  }
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    FreshEnd& peer = fresh[1 - side];
    std::array<Completion, 8> list;
    promise(f.sent.poll(list) == 4, "a fresh pair: completions are missing");
    for (unsigned verb = 0; verb < 4; ++verb) {
      if (list[verb].status == CompletionStatus::success && list[verb].wr_id == verb) continue;
      wrong("a fresh pair: request " + std::to_string(list[verb].wr_id) + " ends with " +
            to_string(list[verb].status));
    }
    promise(f.received.poll(list) == 1 && list[0].status == CompletionStatus::success &&
                list[0].bytes == kLength,
            "a fresh pair: the receive is not complete");
    for (unsigned verb = 0; verb < 3; ++verb) {
      FreshEnd& into = verb == 2 ? f : peer;
      const auto part = std::span(into.memory).subspan((4 * side + verb) * kPart, kLength);
      promise(soak::pattern_mismatch(part, 10 * side + verb, 0) == kLength,
              "a fresh pair: wrong bytes");
    }
    std::uint64_t word;
    std::memcpy(&word, peer.memory.data() + (4 * side + 3) * kPart, sizeof word);
    promise(word == 41, "a fresh pair: the atomic did not run once");
  }
  for (unsigned side = 0; side < 2; ++side) {
    pair.ends[side]->engine.destroy_qp(pair.now, fresh[side].qp);
    pair.ends[side]->touched = true;
  }
}

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
    promise(end->engine.inflight_bytes() == 0, "bytes in flight without a queue pair");
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
      {AlgorithmId::fixed, AlgorithmId::dcqcn, AlgorithmId::cadence, AlgorithmId::eqds},
      {AlgorithmId::hpcc, AlgorithmId::powertcp, AlgorithmId::hpcc, AlgorithmId::powertcp},
      {AlgorithmId::nscc, AlgorithmId::sird, AlgorithmId::homa, AlgorithmId::swift}};
  const bool telemetry = how >> 6 == 2;
  fuzz::EnginePair pair(kAlgorithms[how >> 6][how & 3U], telemetry,
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
