#include "tests/interop/peer/engine_backend.h"

#include <array>
#include <stdexcept>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline::interop {

namespace {

using namespace transport;

constexpr std::size_t kQueueDepth = 128;
constexpr std::size_t kCompletions = 512;

neighbour::HostConfig host_config(const EngineBackendOptions& options) {
  neighbour::HostConfig host;
  host.mac = options.mac;
  host.addresses.push_back(options.address);
  host.ip_mtu = options.ip_mtu;
  return host;
}

EngineConfig engine_config(const EngineBackendOptions& options, const PortInfo& port) {
  EngineConfig config;
  config.address = options.address.address;
  config.mac = options.mac;
  // All that we offer to our own kind, as on any network: a foreign peer has to be found out, and
  // served with what it knows.
  config.peers = PeerPolicy::discover;
  config.reliability = Reliability::selective;
  config.payload_mtu = port.mtu_bytes;
  config.base_rtt_ns = 1'000'000;  // an emulated processor answers
  cc::PortFacts facts;
  facts.link_rate = port.link_rate;
  facts.mtu_bytes = config.payload_mtu;
  facts.full_packet_bytes = port.wire.wire_bytes(config.payload_mtu + 62, config.payload_mtu);
  facts.base_rtt_ns = config.base_rtt_ns;
  const auto choose = [&facts](cc::AlgorithmId algorithm) {
    return CcChoice{algorithm, std::get<std::vector<double>>(
                                   cc::resolve_params(*cc::find(algorithm), "", {}, facts))};
  };
  config.primary = choose(cc::AlgorithmId::cadence);
  config.fallback = choose(cc::AlgorithmId::dcqcn);
  return config;
}

std::string operation_text(CompletionOpcode opcode) {
  constexpr std::array kNames = {
      "send", "write", "read", "fetch_add", "compare_swap", "receive", "receive_write_imm"};
  return kNames[static_cast<std::size_t>(opcode)];
}

WorkOpcode opcode_of(Operation operation) {
  constexpr std::array kOpcodes = {
      WorkOpcode::send, WorkOpcode::send_imm,  WorkOpcode::write,       WorkOpcode::write_imm,
      WorkOpcode::read, WorkOpcode::fetch_add, WorkOpcode::compare_swap};
  return kOpcodes[static_cast<std::size_t>(operation)];
}

wire::IpAddress ip_from(const std::string& text) {
  std::string error;
  const auto address = wire::ip_address_from_text(text, &error);
  if (!address) throw std::runtime_error(error);
  return *address;
}

const char* to_text(PostResult result) {
  constexpr std::array kNames = {"ok",      "queue full",        "bad state",  "bad length",
                                 "bad key", "too many segments", "bad target", "bad opcode"};
  return kNames[static_cast<std::size_t>(result)];
}

}  // namespace

EngineBackend::EngineBackend(const EngineBackendOptions& options)
    : host_(host_config(options)),
      clock_(TscClock::calibrated()),
      socket_(options.interface),
      resolving_(socket_, host_, Random(options.seed)),
      weather_(resolving_, options.seed),
      engine_(engine_config(options, weather_.info()), weather_) {}

Registered EngineBackend::add_region(std::uint64_t bytes, bool remote) {
  auto memory = std::make_unique<std::vector<std::byte>>(bytes);
  const auto rights =
      static_cast<std::uint8_t>(access::local_write | (remote ? access::remote : 0));
  const std::uint32_t key = engine_.regions().add_plain(next_base_, *memory, rights);
  const Registered registered{memory->data(), next_base_, bytes, key, key};
  next_base_ += 0x1'0000'0000;
  memory_.push_back(std::move(memory));
  return registered;
}

EngineBackend::QueuePair& EngineBackend::find(unsigned id) {
  const auto found = queue_pairs_.find(id);
  if (found == queue_pairs_.end()) throw std::runtime_error("no such queue pair");
  return found->second;
}

std::uint32_t EngineBackend::make_qp(unsigned id, const QueuePairSpec& spec) {
  if (queue_pairs_.contains(id)) throw std::runtime_error("this queue pair exists");
  QueuePair pair;
  pair.spec = spec;
  pair.send_cq = std::make_unique<CompletionQueue>(kCompletions);
  pair.receive_cq = std::make_unique<CompletionQueue>(kCompletions);
  pair.receives = std::make_unique<ReceiveQueue>(kQueueDepth, ReceiveSharing::owned);
  QpConfig config;
  config.type = spec.datagram ? QpType::ud : QpType::rc;
  config.retry_count = static_cast<std::uint8_t>(spec.retries);
  config.rnr_retry = static_cast<std::uint8_t>(spec.rnr_retries);
  config.min_rnr_timer = static_cast<std::uint8_t>(spec.rnr_timer);
  config.retransmit_timeout = ack_timeout(static_cast<std::uint8_t>(spec.timeout));
  config.max_rd_atomic = static_cast<std::uint8_t>(spec.depth);
  config.max_dest_rd_atomic = static_cast<std::uint8_t>(spec.depth);
  config.send_queue_depth = kQueueDepth;
  if (!spec.datagram) config.path_mtu = static_cast<std::uint16_t>(spec.mtu);
  config.qkey = spec.qkey;
  config.send_cq = pair.send_cq.get();
  config.receive_cq = pair.receive_cq.get();
  config.receive_queue = pair.receives.get();
  pair.number = engine_.create_qp(config);
  if (pair.number == 0) throw std::runtime_error("no more queue pairs");
  const std::uint32_t number = pair.number;
  lead(pair, QpState::init);
  if (spec.datagram) {
    lead(pair, QpState::rtr);
    lead(pair, QpState::rts);
  }
  queue_pairs_[id] = std::move(pair);
  return number;
}

void EngineBackend::lead(const QueuePair& pair, QpState to) {
  const QpType type = pair.spec.datagram ? QpType::ud : QpType::rc;
  const std::uint32_t mask =
      transition_rule(type, engine_.view().state_of(pair.number), to).required;
  QpAttributes attributes = *engine_.query_qp(pair.number);
  attributes.state = to;
  attributes.qkey = pair.spec.qkey;
  attributes.sq_psn = Psn(pair.spec.first_psn);
  const ModifyResult result =
      engine_.modify_qp(now_, pair.number, attributes, mask | qp_attribute::state);
  if (!result.ok()) throw std::runtime_error(to_string(result.error));
}

void EngineBackend::connect(unsigned id, const Remote& remote) {
  const QueuePair& pair = find(id);
  QpAddress there;
  there.ip = ip_from(remote.ip);
  there.qp_number = remote.number;
  there.first_psn = Psn(remote.first_psn);
  const auto port = static_cast<std::uint16_t>(0xC000U + pair.number % 0x4000U);
  if (!engine_.connect(now_, pair.number, there, Psn(pair.spec.first_psn), port)) {
    throw std::runtime_error("cannot be connected");
  }
}

void EngineBackend::post(unsigned id, const Work& work) {
  QueuePair& pair = find(id);
  WorkRequest request;
  request.wr_id = work.id;
  request.opcode = opcode_of(work.operation);
  request.length = work.length;
  request.local_address = work.address;
  request.local_key = work.key;
  request.remote_address = work.remote_address;
  request.remote_key = work.remote_key;
  request.immediate = work.immediate;
  request.compare = work.compare;
  request.swap_add = work.swap_add;
  if (pair.spec.datagram) {
    if (!pair.handles.contains(work.ip)) {
      // Few packets wait for an address, and nobody sends a datagram again.
      for (int i = 0; i < 1000 && !resolving_.resolve(now_, ip_from(work.ip)); ++i) turn(-1);
      pair.handles[work.ip] = engine_.create_address_handle(now_, 0, {ip_from(work.ip), {}});
    }
    request.address_handle = pair.handles[work.ip];
    request.target_qp_number = work.number;
    request.target_qkey = work.qkey;
  }
  const PostResult result = engine_.post_send(now_, pair.number, request);
  engine_.poll(now_);
  if (result != PostResult::ok) throw std::runtime_error(to_text(result));
}

void EngineBackend::receive(unsigned id, const Work& work) {
  if (!engine_.post_receive(now_, find(id).number,
                            {work.id, work.address, work.length, work.key})) {
    throw std::runtime_error("the receive was refused");
  }
}

std::vector<Done> EngineBackend::completed(unsigned id, bool receives) {
  const QueuePair& pair = find(id);
  std::vector<Done> done;
  Completion c;
  while ((receives ? pair.receive_cq : pair.send_cq)->poll({&c, 1}) != 0) {
    Done one;
    one.id = c.wr_id;
    one.status = to_string(c.status);
    one.operation = c.status == CompletionStatus::success ? operation_text(c.opcode) : "-";
    if (c.status == CompletionStatus::success) {
      one.bytes = receives ? c.bytes : 0;
      if (c.has_immediate) one.immediate = c.immediate;
      one.grh = c.has_grh;
      if (pair.spec.datagram && receives) one.source = c.source_qp_number;
    }
    done.push_back(one);
  }
  return done;
}

std::string EngineBackend::state(unsigned id) {
  constexpr std::array kNames = {"reset", "init", "rtr", "rts", "sqd", "sqe", "error"};
  return kNames[static_cast<std::size_t>(engine_.view().state_of(find(id).number))];
}

void EngineBackend::destroy(unsigned id) {
  QueuePair& pair = find(id);
  for (const auto& [ip, handle] : pair.handles) engine_.destroy_address_handle(now_, handle);
  engine_.destroy_qp(now_, pair.number);
  engine_.poll(now_);
  queue_pairs_.erase(id);
}

std::string EngineBackend::address() { return wire::to_text(host_.addresses[0].address); }

void EngineBackend::turn(int fd) {
  now_ = later(clock_.now(), now_);
  resolving_.poll(now_);
  weather_.poll(now_);
  const std::uint64_t received = engine_.counters().rx_packets;
  engine_.poll(now_);
  if (engine_.counters().rx_packets != received) return;
  if (engine_.next_deadline() <= now_ + picos_from_micros(500)) return;
  socket_.wait_beside(fd, 1);
}

std::string EngineBackend::counters() const {
  std::string text;
  telemetry::for_each(engine_.counters(), [&text](std::string_view name, std::uint64_t value) {
    if (value != 0) text += ' ' + std::string(name) + '=' + std::to_string(value);
  });
  for (const Way way : {Way::in, Way::out}) {
    const ImpairmentCounters& weather = weather_.counters(way);
    const std::string side = way == Way::in ? " in_" : " out_";
    text += side + "lost=" + std::to_string(weather.dropped) + side +
            "doubled=" + std::to_string(weather.duplicated) + side +
            "delayed=" + std::to_string(weather.reordered) + side +
            "damaged=" + std::to_string(weather.corrupted) + side +
            "marked=" + std::to_string(weather.marked);
  }
  return text;
}

std::string EngineBackend::whole() const {
  if (engine_.view().inflight_bytes() != 0) return "error bytes are still in flight";
  for (const std::string& broken : {engine_.view().check_conservation(),
                                    resolving_.check_conservation(), engine_.view().violation()}) {
    if (!broken.empty()) return "error " + broken;
  }
  return "ok";
}

std::string EngineBackend::seen(std::span<const std::string> words) const {
  const Way way = words[1] == "in" ? Way::in : Way::out;
  if (words.size() > 2) {
    const auto opcode = static_cast<std::uint8_t>(std::stoul(words[2], nullptr, 0));
    return "ok " + std::to_string(weather_.seen(way, opcode));
  }
  std::string text = "ok";
  for (std::size_t opcode = 0; opcode < static_cast<std::size_t>(wire::Opcode::hello); ++opcode) {
    const std::uint64_t count = weather_.seen(way)[opcode];
    if (count != 0) text += ' ' + std::to_string(opcode) + '=' + std::to_string(count);
  }
  return text;
}

std::optional<std::string> EngineBackend::other(std::span<const std::string> words) {
  if (words[0] == "counters") return "ok" + counters();
  if (words[0] == "whole") return whole();
  if (words.size() < 2 || (words[1] != "in" && words[1] != "out")) return std::nullopt;
  const Way way = words[1] == "in" ? Way::in : Way::out;
  if (words[0] == "seen") return seen(words);
  if (words[0] == "weather") {
    Impairments impairments;
    impairments.max_hold = 4;
    for (const std::string& word : words.subspan(2)) {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const double value = std::stod(word.substr(equals + 1));
      double* const field = name == "drop"        ? &impairments.drop
                            : name == "duplicate" ? &impairments.duplicate
                            : name == "reorder"   ? &impairments.reorder
                            : name == "corrupt"   ? &impairments.corrupt
                            : name == "mark"      ? &impairments.mark
                                                  : nullptr;
      if (field == nullptr) throw std::runtime_error("no such weather: " + name);
      *field = value;
    }
    weather_.set(way, impairments);
    return "ok";
  }
  if (words.size() < 3) return std::nullopt;
  const auto opcode = static_cast<std::uint8_t>(std::stoul(words[2], nullptr, 0));
  if (words[0] == "repeat") return weather_.repeat(way, opcode) ? "ok" : "error there was none";
  if (words.size() < 4) return std::nullopt;
  const auto count = static_cast<unsigned>(std::stoul(words[3]));
  if (words[0] == "spoil") {
    weather_.spoil_next(way, opcode, count);
  } else if (words[0] == "lose") {
    weather_.lose_next(way, opcode, count);
  } else {
    return std::nullopt;
  }
  return "ok";
}

}  // namespace paceline::interop
