#include "tests/unit/transport/lab.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "cc/params.h"
#include "cc/registry.h"

namespace paceline::transport::test {

namespace {

PortInfo info_of(const LabOptions& options) {
  PortInfo info;
  info.link_rate = options.link_rate;
  info.payload_room = 4096;
  info.tx_burst = options.tx_burst;
  info.computes_icrc = false;
  info.stamps_arrivals = options.stamps_arrivals;
  return info;
}

EngineConfig engine_of(const LabOptions& options, unsigned index) {
  EngineConfig config = options.engine;
  config.address = wire::IpAddress::v4(0x0A00'0001 + index);
  config.mac = wire::MacAddress::local(1 + index);
  if (index == 1 && options.foreign_b) config.speak_control = false;
  config.check_invariants = true;
  if (config.primary.values.empty()) config.primary = choose_cc(config.primary.algorithm, options);
  if (config.fallback.values.empty()) {
    config.fallback = choose_cc(config.fallback.algorithm, options);
  }
  return config;
}

void copy_fields(const Packet& from, Packet& to) {
  std::byte* const buffer = to.payload;
  const std::uint16_t pool = to.pool_id;
  to = from;
  to.payload = buffer;
  to.pool_id = pool;
  to.next = nullptr;
}

}  // namespace

void WirePort::inject(Picos at, const Packet& packet, std::span<const std::byte> payload) {
  if (!arriving_.empty()) at = later(at, arriving_.back().at);
  arriving_.push_back({at, packet, {payload.begin(), payload.end()}});
}

std::size_t WirePort::rx(std::span<Packet*> burst) {
  if (blind_ != 0) {
    --blind_;
    return 0;
  }
  std::size_t n = 0;
  while (n < burst.size() && !arriving_.empty() && arriving_.front().at <= now_) {
    Packet* packet = pool_.alloc();
    if (packet == nullptr) throw std::runtime_error("a pool of the lab is empty");
    const Frame& frame = arriving_.front();
    copy_fields(frame.packet, *packet);
    if (!frame.payload.empty()) {
      std::memcpy(packet->payload, frame.payload.data(), frame.payload.size());
    }
    packet->time = later(Picos{0}, frame.at - stamp_error_);
    arriving_.pop_front();
    burst[n++] = packet;
  }
  return n;
}

std::size_t WirePort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  if (refuse_ != 0) {
    --refuse_;
    busy_until_ = later(busy_until_, now + picos_from_micros(1));  // it is asked again after that
    return 0;
  }
  std::size_t n = 0;
  while (n < burst.size() && busy_until_ <= now) {
    Packet* packet = burst[n];
    packet->wire_bytes = info_.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
    busy_until_ = now + serialization_time(packet->wire_bytes, info_.link_rate);
    if (on_departure) on_departure(now, *packet);
    departures_.push_back({busy_until_, packet->wire_bytes, traffic_class});
    const bool owned = packet->payload_kind == PayloadKind::owned;
    peer_->inject(busy_until_ + delay_, *packet,
                  owned ? packet->payload_view() : std::span<const std::byte>{});
    pool_.free(packet);
    ++n;
  }
  return n;
}

ImpairmentVerdict ScriptedPort::judge(const Packet& packet) {
  ImpairmentVerdict verdict;
  if (script_) {
    wire::ParsedPacket parsed;
    if (wire::parse_headers(packet.header_view(), packet.payload_bytes, parsed) ==
            wire::ParseError::ok &&
        script_(parsed, verdict)) {
      return verdict;
    }
  }
  return ImpairedPort::judge(packet);
}

CcChoice choose_cc(cc::AlgorithmId id, const LabOptions& options,
                   std::span<const std::pair<std::string_view, double>> overrides) {
  cc::PortFacts facts;
  facts.link_rate = options.link_rate;
  facts.mtu_bytes = options.engine.payload_mtu;
  facts.full_packet_bytes = WireAccounting{}.wire_bytes(
      EngineCore::kPlainHeaderBytes + facts.mtu_bytes + 8, facts.mtu_bytes);
  facts.base_rtt_ns = options.engine.base_rtt_ns;
  std::vector<cc::ParamOverride> list;
  for (const auto& [name, value] : overrides) list.push_back({name, value});
  auto resolved = cc::resolve_params(*cc::find(id), "", list, facts);
  if (const auto* errors = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
    throw std::invalid_argument(errors->front().message);
  }
  return {id, std::get<std::vector<double>>(resolved)};
}

Lab::Side::Side(const LabOptions& options, unsigned index)
    : port(info_of(options), options.delay, options.pool_packets,
           static_cast<std::uint16_t>(index)),
      cable(port, options.impairments, Random(options.seed, index)),
      engine(engine_of(options, index), cable),
      send_cq(8192),
      receive_cq(8192),
      receives(4096),
      memory(kMemoryBytes),
      key(engine.regions().add_plain(kBase, memory, access::local_write | access::remote)) {}

std::vector<Completion> Lab::Side::sent() {
  std::vector<Completion> out(send_cq.size());
  out.resize(send_cq.poll(out));
  return out;
}

std::vector<Completion> Lab::Side::received() {
  std::vector<Completion> out(receive_cq.size());
  out.resize(receive_cq.poll(out));
  return out;
}

bool Lab::Side::post_receive(std::uint64_t id, std::uint64_t offset, std::uint64_t length) {
  return receives.post({id, kBase + offset, length, key});
}

Lab::Lab(const LabOptions& options) : options_(options) {
  for (unsigned i = 0; i < 2; ++i) sides_[i] = std::make_unique<Side>(options, i);
  a().port.join(b().port);
  b().port.join(a().port);
}

Lab::~Lab() = default;

QpConfig Lab::qp_config(unsigned index) const {
  QpConfig config = options_.qp;
  config.send_cq = &sides_[index]->send_cq;
  config.receive_cq = &sides_[index]->receive_cq;
  config.receive_queue = &sides_[index]->receives;
  return config;
}

Lab::Pair Lab::connect(std::uint32_t first_psn_a, std::uint32_t first_psn_b) {
  return connect(qp_config(0), qp_config(1), first_psn_a, first_psn_b);
}

Lab::Pair Lab::connect(const QpConfig& config_a, const QpConfig& config_b,
                       std::uint32_t first_psn_a, std::uint32_t first_psn_b) {
  Pair pair{a().engine.create_qp(config_a), b().engine.create_qp(config_b)};
  const QpAddress at_a = a().engine.address_of(pair.a, Psn(first_psn_a));
  const QpAddress at_b = b().engine.address_of(pair.b, Psn(first_psn_b));
  if (!a().engine.connect(now_, pair.a, at_b, Psn(first_psn_a), 0xC001) ||
      !b().engine.connect(now_, pair.b, at_a, Psn(first_psn_b), 0xC002)) {
    throw std::logic_error("queue pairs do not connect");
  }
  touch(0);
  touch(1);
  return pair;
}

PostResult Lab::post(unsigned index, std::uint32_t qp, const WorkRequest& request) {
  const PostResult result = sides_[index]->engine.post_send(now_, qp, request);
  if (result == PostResult::ok) touch(index);
  return result;
}

WorkRequest Lab::request(WorkOpcode opcode, std::uint64_t id, std::uint64_t from, std::uint64_t to,
                         std::uint64_t length, std::uint32_t immediate) {
  WorkRequest request;
  request.wr_id = id;
  request.opcode = opcode;
  request.length = length;
  request.immediate = immediate;
  request.local_address = kBase + from;
  request.local_key = a().key;  // both sides register alike
  request.remote_address = kBase + to;
  request.remote_key = b().key;
  return request;
}

void Lab::poll(unsigned index) {
  Side& side = *sides_[index];
  touched_[index] = false;
  side.port.set_now(now_);
  if (stops_[index].until <= now_) {
    const Stop stop = std::exchange(stops_[index], Stop{});
    side.port.blind_calls(1);
    if (stop.told) side.engine.stopped(now_, now_ - stop.from);
  }
  side.engine.poll(now_);
  if (side.engine.next_deadline() <= now_) {
    throw std::logic_error("next_deadline() is not later than the poll");
  }
  if (++side.polls % 64 == 0) {
    const std::string broken = side.engine.view().check_conservation();
    if (!broken.empty()) throw std::logic_error(broken);
  }
  if (!side.engine.view().violation().empty())
    throw std::logic_error(side.engine.view().violation());
  if (on_poll) on_poll(index);
}

bool Lab::run(Picos limit) {
  for (;;) {
    Picos next = kNever;
    std::array<Picos, 2> due{};
    for (unsigned i = 0; i < 2; ++i) {
      Side& side = *sides_[i];
      due[i] = touched_[i]
                   ? now_
                   : later(now_, earlier(side.engine.next_deadline(), side.cable.rx_ready_at()));
      if (due[i] >= stops_[i].from) due[i] = later(due[i], stops_[i].until);
      next = earlier(next, due[i]);
    }
    if (next == kNever) return true;
    if (next > limit) {
      now_ = limit;
      return false;
    }
    now_ = next;
    for (unsigned i = 0; i < 2; ++i) {
      if (due[i] <= now_) poll(i);
    }
  }
}

void Lab::fill(std::span<std::byte> memory, std::uint64_t seed) {
  Random random(seed, 77);
  // Eight bytes at a time: with sanitizers, one by one took most of the tests' time.
  while (!memory.empty()) {
    const std::uint64_t word = random.next();
    const std::size_t bytes = std::min(memory.size(), sizeof(word));
    std::memcpy(memory.data(), &word, bytes);
    memory = memory.subspan(bytes);
  }
}

std::string Lab::leftovers() {
  for (unsigned i = 0; i < 2; ++i) {
    Side& side = *sides_[i];
    const std::string name = i == 0 ? "a: " : "b: ";
    side.cable.take_back();
    if (side.port.packets().in_use() != 0) {
      return name + std::to_string(side.port.packets().in_use()) + " packets are not back";
    }
    if (side.engine.view().inflight_bytes() != 0) return name + "bytes in flight";
    const std::string broken = side.engine.view().check_conservation();
    if (!broken.empty()) return name + broken;
  }
  return {};
}

LabOptions small_packets() {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  return options;
}

ScriptedPort::Script drop_if(std::function<bool(const wire::ParsedPacket&)> predicate) {
  return [predicate](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = predicate(p);
    return true;
  };
}

bool equal_memories(Lab& lab, std::size_t bytes) {
  return std::memcmp(lab.a().memory.data(), lab.b().memory.data(), bytes) == 0;
}

}  // namespace paceline::transport::test
