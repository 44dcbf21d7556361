#include "dataplane/transport/engine.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "dataplane/wire/icrc.h"

namespace paceline::transport {

namespace {
// After so many, what they brought about (ACKs) leaves before the next are taken: the peer goes on
// meanwhile.
constexpr std::size_t kReceiveBurst = 16;
}  // namespace

Engine::Engine(EngineConfig config, Port& port)
    : core_(std::move(config), port),
      scheduler_(core_),
      requester_(core_, scheduler_),
      responder_(core_, scheduler_, requester_),
      control_(core_, scheduler_),
      states_(core_, requester_, responder_, control_) {
  core_.answers_last = core_.config.answers_last;
  core_.regions.end_loans_of(core_.pool);
  scheduler_.connect(requester_, responder_, control_);
}

Engine::~Engine() {
  core_.pool.end_loans();  // registered memory may go with it
  for (QueuePair* qp : core_.qps) {
    if (qp == nullptr) continue;
    requester_.discard(*qp);
    responder_.discard(*qp);
  }
  scheduler_.discard();
  while (Packet* packet = core_.control_head) {
    core_.control_head = packet->next;
    core_.pool.free(packet);
  }
}

std::uint32_t Engine::create_qp(const QpConfig& config) {
  const QueuePair* qp = states_.create(config);
  return qp == nullptr ? 0 : qp->number;
}

QpAddress Engine::address_of(std::uint32_t qp_number, Psn first_psn) const {
  return {core_.config.address, core_.config.mac, qp_number, first_psn};
}

bool Engine::connect(Picos now, std::uint32_t qp_number, const QpAddress& remote, Psn first_psn,
                     std::uint16_t source_port) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  return qp != nullptr && states_.connect(*qp, remote, first_psn, source_port);
}

void Engine::hear_crowd(Picos now, const wire::IpAddress& ip, std::uint8_t traffic_class,
                        std::uint8_t crowd) {
  core_.now = now;
  control_.hear_crowd(ip, traffic_class, crowd);
}

ModifyResult Engine::modify_qp(Picos now, std::uint32_t qp_number, const QpAttributes& attributes,
                               std::uint32_t mask) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return {ModifyError::no_queue_pair, 0};
  return states_.modify(*qp, attributes, mask);
}

std::optional<QpAttributes> Engine::query_qp(std::uint32_t qp_number) const {
  const QueuePair* qp = const_cast<EngineCore&>(core_).find_qp(qp_number);
  if (qp == nullptr) return std::nullopt;
  return states_.query(*qp);
}

void Engine::destroy_qp(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  if (QueuePair* qp = core_.find_qp(qp_number)) states_.destroy(*qp);
}

void Engine::abandon_qp(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return;
  if (!qp->unreliable && can_receive(qp->state)) responder_.say_goodbye(*qp);
  states_.destroy(*qp);
}

bool Engine::limit_rate(Picos now, std::uint32_t qp_number, Rate rate, std::uint32_t burst_bytes) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return false;
  requester_.limit_rate(*qp, rate, burst_bytes);
  return true;
}

bool Engine::post_receive(Picos now, std::uint32_t qp_number, const ReceiveRequest& request) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr || qp->state == QpState::reset || qp->config.receive_queue == nullptr) {
    return false;
  }
  if (qp->state != QpState::error || qp->config.receive_queue->shared()) {
    return qp->config.receive_queue->post(request);
  }
  Completion completion;
  completion.wr_id = request.wr_id;
  completion.at = now;
  completion.qp_number = qp_number;
  completion.opcode = CompletionOpcode::receive;
  completion.status = CompletionStatus::flushed;
  core_.complete(qp->config.receive_cq, completion);
  return true;
}

std::uint32_t Engine::create_address_handle(Picos now, std::uint32_t pd, const QpPath& path) {
  core_.now = now;
  AddressHandle& handle = core_.handles.add();
  handle.pd = pd;
  handle.path = path;
  handle.header = wire::make_header_template(core_.flow_to(path));
  control_.attach(handle);
  return handle.number;
}

bool Engine::destroy_address_handle(Picos now, std::uint32_t number) {
  core_.now = now;
  AddressHandle* handle = core_.handles.find(number);
  if (handle == nullptr || handle->uses != 0) return false;
  control_.detach(*handle);
  core_.handles.remove(*handle);
  return true;
}

void Engine::restart_congestion(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp != nullptr && qp->context != kNoIndex) control_.restart(*qp);
}

void Engine::reconfigure(Picos now, const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch) {
  assert(now >= core_.now);
  if (const std::string refusal = control_.refusal(setup); !refusal.empty()) {
    throw std::invalid_argument(refusal);
  }
  core_.now = now;
  control_.reconfigure(setup, arm, epoch);
}

void Engine::reconfigure(Picos now, const ArmsByPeer& arms, std::uint8_t epoch) {
  assert(now >= core_.now);
  if (const std::string refusal = control_.refusal(arms); !refusal.empty()) {
    throw std::invalid_argument(refusal);
  }
  core_.now = now;
  control_.reconfigure(arms, epoch);
}

PostResult Engine::post_send(Picos now, std::uint32_t qp_number, const WorkRequest& request) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return PostResult::bad_state;
  const PostResult result = requester_.post(*qp, request);
  if (result != PostResult::ok || !can_send(qp->state)) return result;
  const std::uint32_t context = requester_.context_of(*qp, request);
  cc::Event event;
  event.signal = cc::Signal::message;
  // A READ sends no more than its request; an empty message counts a byte (Scheduler::deliver).
  event.message_bytes =
      is_answered(request.opcode) ? 1 : std::max<std::uint64_t>(qp->requester.posted_length(), 1);
  event.hint_collective = request.hint.collective;
  event.hint_degree = request.hint.degree;
  event.hint_kind = request.hint.kind;
  scheduler_.deliver(context, event);
  if (qp->config.type == QpType::ud) {
    requester_.retarget(*qp);
  } else if (RequesterPart::has_work(*qp, now)) {
    scheduler_.activate(*qp);
  }
  return result;
}

void Engine::memory_ready(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return;
  requester_.memory_ready(*qp);
  responder_.memory_ready(*qp);
}

void Engine::receive(Packet* packet) {
  ++core_.counters.rx_packets;
  core_.counters.rx_wire_bytes += packet->wire_bytes;
  if ((packet->flags & (packet_flag::corrupt | packet_flag::trimmed)) != 0) [[unlikely]] {
    if ((packet->flags & packet_flag::corrupt) != 0) {
      core_.count_malformed(wire::ParseError::corrupt);
    } else {
      receive_trimmed(*packet);
    }
    core_.pool.free(packet);
    return;
  }
  wire::ParsedPacket parsed;
  // Where no bit can flip, nothing needs summing.
  const wire::ParseOptions options{!core_.info.computes_icrc, false};
  wire::ParseError error =
      wire::parse_brief(packet->header_view(), packet->payload_bytes, options, parsed);
  if (error == wire::ParseError::ok && !core_.info.computes_icrc &&
      packet->icrc != wire::icrc(packet->header_view(), parsed.l3_offset, packet->payload_view())) {
    error = wire::ParseError::bad_icrc;
  }
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    core_.pool.free(packet);
    return;
  }
  if (parsed.properties.is_control()) {
    control_.count_foreign(packet->wire_bytes);
    control_.on_control(parsed, *packet);
    core_.pool.free(packet);
    return;
  }
  QueuePair* qp = core_.find_qp(parsed.dest_qpn);
  if (qp == nullptr || !from_peer(*qp, parsed)) {
    if (qp != nullptr && qp->config.type == QpType::ud) {
      receive_datagram(*qp, parsed, packet);
      return;
    }
    ++core_.counters.no_queue_pair;
    control_.count_foreign(packet->wire_bytes);
    core_.pool.free(packet);
    return;
  }
  switch (parsed.properties.operation) {
    case wire::Operation::send:
    case wire::Operation::write:
    case wire::Operation::read_request:
    case wire::Operation::compare_swap:
    case wire::Operation::fetch_add:
      count_data(*qp, parsed, *packet);
      if (parsed.properties.service != (qp->unreliable ? wire::Service::uc : wire::Service::rc))
        break;
      responder_.on_request(*qp, parsed, packet);
      return;  // the responder has the packet
    case wire::Operation::read_response:
      count_data(*qp, parsed, *packet);
      if (qp->unreliable) break;
      if (parsed.ecn == Ecn::ce) responder_.on_marked(*qp);
      requester_.on_response(*qp, parsed, packet);
      return;
    case wire::Operation::atomic_acknowledge:
      control_.count_foreign(packet->wire_bytes);
      ++core_.counters.acks_received;
      ++core_.counters.atomic_answers;
      requester_.on_response(*qp, parsed, packet);
      return;
    case wire::Operation::acknowledge:
      control_.count_foreign(packet->wire_bytes);
      ++core_.counters.acks_received;
      if (requester_.holds_answers(*qp)) {
        requester_.hold(*qp, packet);
        return;
      }
      requester_.on_acknowledge(*qp, parsed);
      core_.pool.free(packet);
      return;
    case wire::Operation::xack:
      control_.count_foreign(packet->wire_bytes);
      if (qp->unreliable) break;
      ++core_.counters.acks_received;
      if (requester_.holds_answers(*qp)) {
        requester_.hold(*qp, packet);
        return;
      }
      requester_.on_xack(*qp, parsed, *packet);
      core_.pool.free(packet);
      return;
    case wire::Operation::cnp:
      control_.count_foreign(packet->wire_bytes);
      requester_.on_cnp(*qp);
      core_.pool.free(packet);
      return;
    default:
      control_.count_foreign(packet->wire_bytes);
      break;
  }
  ++core_.counters.unsupported_operations;
  core_.pool.free(packet);
}

// IPv4, the usual case, is told from the queue pair alone.
bool Engine::from_peer(const QueuePair& qp, const wire::ParsedPacket& parsed) const {
  if (!parsed.ipv6 && qp.peer_v4 != 0) return parsed.source.v4_value() == qp.peer_v4;
  return qp.peer != kNoIndex && core_.peers[qp.peer].ip == parsed.source;
}

// For a UD queue pair, from anybody.
void Engine::receive_datagram(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  const std::uint32_t peer =
      core_.peers.find(parsed.source, wire::kDefaultDscpMap.traffic_class(parsed.dscp));
  if (parsed.properties.service == wire::Service::ud) {
    control_.count_data(peer == kNoIndex ? nullptr : core_.peers[peer].counters, parsed, *packet);
    responder_.on_request(qp, parsed, packet);
    return;
  }
  control_.count_foreign(packet->wire_bytes);
  if (parsed.properties.operation == wire::Operation::cnp) {
    control_.on_datagram_cnp(parsed.source);
  } else {
    ++core_.counters.unsupported_operations;
  }
  core_.pool.free(packet);
}

// Of a connected queue pair.
void Engine::count_data(const QueuePair& qp, const wire::ParsedPacket& parsed,
                        const Packet& packet) {
  control_.count_data(core_.peers[qp.peer].counters, parsed, packet);
}

// Control packets go ahead of all data, as many as the port takes now.
void Engine::flush_control() {
  if (core_.acks_waiting) {
    core_.waiting_acks.fill({});
    core_.acks_waiting = false;
  }
  while (core_.control_head != nullptr && core_.port.tx_ready_at(kControlClass) <= core_.now) {
    std::array<Packet*, kReceiveBurst> burst;
    const std::size_t limit = std::min<std::size_t>(core_.info.tx_burst, burst.size());
    std::size_t count = 0;
    for (Packet* packet = core_.control_head; packet != nullptr && count < limit;
         packet = packet->next) {
      burst[count++] = packet;
    }
    if (!core_.info.computes_icrc) {
      for (std::size_t i = 0; i < count; ++i) {
        burst[i]->icrc = wire::icrc(burst[i]->header_view(), wire::kEthernetBytes);
      }
    }
    Packet* const rest = burst[count - 1]->next;
    const std::size_t taken = core_.port.tx(core_.now, kControlClass, {burst.data(), count});
    core_.control_head = taken == count ? rest : burst[taken];
    if (core_.control_head == nullptr) core_.control_tail = nullptr;
    core_.counters.tx_control_packets += taken;
    if (taken != count) break;
  }
}

// Time is that of the poll, but for what is measured: that ends when the packet came.
void Engine::receive_stamped(std::span<Packet* const> burst) {
  for (Packet* const packet : burst) {
    core_.arrived = packet->time;
    core_.stamped = core_.arrived.count > 0 && core_.arrived < core_.now;
    receive(packet);
  }
  core_.stamped = false;
}

inline std::size_t Engine::take_in(Picos now) {
  assert(now >= core_.now);
  core_.now = now;
  std::size_t taken = 0;
  std::array<Packet*, kReceiveBurst> burst;
  for (std::uint32_t n = 1;; ++n) {
    const std::size_t received = core_.port.rx(burst);
    if (core_.info.stamps_arrivals) [[unlikely]] {
      receive_stamped({burst.data(), received});
    } else {
      for (std::size_t i = 0; i < received; ++i) receive(burst[i]);
    }
    core_.pool.burst_seen();
    taken += received;
    if (received != burst.size() || n == core_.config.receive_bursts) break;
    if (core_.control_head != nullptr) flush_control();
  }
  return taken;
}

inline void Engine::send_out() {
  const Picos now = core_.now;
  // Most polls have one thing to do: each part is entered only when it is due.
  if (core_.qp_timers.next_deadline_settled() <= now) run_qp_timers();
  const bool control = core_.control_active;
  if (control && control_.next_deadline() <= now) control_.poll();
  if (scheduler_.due()) scheduler_.run_due();
  if (control && control_.sender_due()) control_.poll_sender();
  if (core_.control_head != nullptr && !(core_.answers_last && scheduler_.sends_little())) {
    flush_control();
  }
  if (scheduler_.has_ready()) {
    scheduler_.send();
    // What sending brought about (a REQUEST after the last byte) need not wait.
    if (core_.control_head != nullptr) flush_control();
  }
  if (core_.cq_overrun) states_.fail_overrun();
}

void Engine::poll(Picos now) {
  take_in(now);
  send_out();
}

std::size_t Engine::take(Picos now) { return take_in(now); }

void Engine::give(Picos now) {
  assert(now >= core_.now);
  core_.now = now;
  send_out();
}

void Engine::stopped(Picos now, Picos gap) {
  assert(gap.count >= 0 && now >= core_.now);
  core_.now = now;
  core_.has_stopped = true;
  core_.stops.until = now;
  core_.stops.total = core_.stops.total + gap;
  ++core_.stops.count;
}

void Engine::run_qp_timers() {
  std::uint32_t index;
  while ((index = core_.qp_timers.pop_due(core_.now)) != pacing::DeadlineQueue::kNone) {
    if (core_.qps[index] != nullptr) requester_.on_timer(*core_.qps[index]);
  }
}

}  // namespace paceline::transport
