#include "dataplane/transport/engine.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "dataplane/transport/datagram/datagram.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::transport {

namespace {
// Packets per receive burst. ACKs are flushed between bursts so that the peer can continue.
constexpr std::size_t kReceiveBurst = 16;
}  // namespace

Engine::Engine(EngineConfig config, Port& port)
    : core_(std::move(config), port),
      scheduler_(core_),
      congestion_(core_, scheduler_, runner_, setups_, peers_, grants_),
      requester_(core_),
      responder_(core_),
      transmit_(core_, scheduler_, congestion_, requester_),
      receive_(core_, requester_, responder_, grants_, congestion_, peers_, migration_),
      runner_(core_, setups_),
      setups_(core_, plugins_),
      messages_(core_),
      peers_(core_, setups_, messages_),
      grants_(core_, setups_, peers_, messages_),
      migration_(core_, scheduler_, congestion_, setups_, peers_, grants_, plugins_),
      states_(core_, requester_, responder_, congestion_, migration_) {
  core_.answers_last = core_.config.answers_last;
  core_.regions.end_loans_of(core_.pool);
}

Engine::~Engine() {
  core_.pool.end_loans();  // registered memory may end with the engine
  for (QueuePair* qp : core_.qps) {
    if (qp == nullptr) continue;
    requester_.discard(*qp);
    responder_.discard(*qp);
  }
  transmit_.discard();
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

void Engine::on_peer_count_hint(Picos now, const wire::IpAddress& ip, std::uint8_t traffic_class,
                                std::uint8_t peer_count_hint) {
  core_.now = now;
  congestion_.on_peer_count_hint(ip, traffic_class, peer_count_hint);
}

ModifyResult Engine::modify_qp(Picos now, std::uint32_t qp_number, const QpAttributes& attributes,
                               std::uint32_t mask) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return {ModifyError::no_queue_pair, 0};
  return states_.modify(*qp, attributes, mask);
}

std::optional<QpAttributes> Engine::query_qp(std::uint32_t qp_number) const {
  const QueuePair* qp = core_.find_qp(qp_number);
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
  if (!qp->unreliable && can_receive(qp->state)) Answers::send_disconnect_nak(core_, *qp);
  states_.destroy(*qp);
}

bool Engine::limit_rate(Picos now, std::uint32_t qp_number, Rate rate, std::uint32_t burst_bytes) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return false;
  RequesterTimer::limit_rate(core_, *qp, rate, burst_bytes);
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
  congestion_.attach(handle);
  return handle.number;
}

bool Engine::destroy_address_handle(Picos now, std::uint32_t number) {
  core_.now = now;
  AddressHandle* handle = core_.handles.find(number);
  if (handle == nullptr || handle->uses != 0) return false;
  congestion_.detach(*handle);
  core_.handles.remove(*handle);
  return true;
}

bool Engine::serve_management(std::uint32_t qp_number) {
  const QueuePair* const qp = core_.find_qp(qp_number);
  if (qp == nullptr || qp->config.type != QpType::ud) return false;
  core_.management_qp = qp_number;
  return true;
}

void Engine::remove_domain_queue(Picos now, std::uint32_t number) {
  core_.now = now;
  const std::uint32_t domain = DomainReceiver::remove(core_, number);
  if (domain == 0) return;
  // Queue pairs that wait for memory of the queue's owner would wait for ever.
  for (QueuePair* qp : core_.qps) {
    if (qp == nullptr || qp->config.type != QpType::xrc_target || qp->config.domain != domain)
      continue;
    responder_.memory_ready(*qp);
    congestion_.perform();
  }
}

void Engine::restart_congestion(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp != nullptr && qp->context != kNoIndex) congestion_.restart(*qp);
}

void Engine::reconfigure(Picos now, const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch) {
  assert(now >= core_.now);
  if (const std::string refusal = setups_.refusal(setup); !refusal.empty()) {
    throw std::invalid_argument(refusal);
  }
  core_.now = now;
  migration_.begin(setup, arm, epoch);
}

void Engine::reconfigure(Picos now, const ArmsByPeer& arms, std::uint8_t epoch) {
  assert(now >= core_.now);
  if (const std::string refusal = setups_.refusal(arms); !refusal.empty()) {
    throw std::invalid_argument(refusal);
  }
  core_.now = now;
  migration_.begin(arms, epoch);
}

PostResult Engine::post_send(Picos now, std::uint32_t qp_number, const WorkRequest& request) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return PostResult::bad_state;
  const PostResult result = requester_.post(*qp, request);
  congestion_.perform();
  if (result != PostResult::ok || !can_send(qp->state)) return result;
  const std::uint32_t context = Datagram::context_of(core_, *qp, request);
  cc::Event event;
  event.signal = cc::Signal::message;
  // A READ sends nothing but its request; an empty message counts as one byte
  // (CongestionManager::deliver).
  event.message_bytes = expects_response(request.opcode)
                            ? 1
                            : std::max<std::uint64_t>(qp->requester.posted_length(), 1);
  event.hint_collective = request.hint.collective;
  event.hint_degree = request.hint.degree;
  event.hint_kind = request.hint.kind;
  congestion_.deliver(context, event);
  if (qp->config.type == QpType::ud) {
    congestion_.retarget(*qp);
  } else if (Requester::has_work(*qp, now)) {
    scheduler_.activate(*qp);
  }
  return result;
}

void Engine::memory_ready(Picos now, std::uint32_t qp_number) {
  core_.now = now;
  QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr) return;
  requester_.memory_ready(*qp);
  congestion_.perform();
  responder_.memory_ready(*qp);
  congestion_.perform();
}

inline std::size_t Engine::take_in(Picos now) {
  assert(now >= core_.now);
  core_.now = now;
  std::size_t taken = 0;
  std::array<Packet*, kReceiveBurst> burst;
  for (std::uint32_t n = 1;; ++n) {
    const std::size_t received = core_.port.rx(burst);
    if (core_.info.stamps_arrivals) [[unlikely]] {
      receive_.receive_stamped({burst.data(), received});
    } else {
      for (std::size_t i = 0; i < received; ++i) receive_.receive(burst[i]);
    }
    core_.pool.burst_seen();
    taken += received;
    if (received != burst.size() || n == core_.config.receive_bursts) break;
    if (core_.control_head != nullptr) transmit_.flush_control();
  }
  return taken;
}

inline void Engine::send_out() {
  const Picos now = core_.now;
  // Most polls have one thing to do: each part is entered only when it is due.
  if (core_.qp_timers.next_deadline_settled() <= now) run_qp_timers();
  const bool control = core_.control_active;
  if (control && control_deadline() <= now) poll_control();
  if (scheduler_.due()) congestion_.run_due();
  if (control && grants_.uplink_due()) congestion_.deliver_shares();
  if (core_.control_head != nullptr && !(core_.answers_last && scheduler_.sends_little())) {
    transmit_.flush_control();
  }
  if (scheduler_.has_ready()) {
    transmit_.send();
    // Control packets caused by sending (a REQUEST after the last byte) need not wait.
    if (core_.control_head != nullptr) transmit_.flush_control();
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

Picos Engine::control_deadline() const {
  if (plugins_.has_news()) return core_.now;
  return earlier(earlier(peers_.next_deadline(), grants_.next_deadline()),
                 migration_.next_deadline());
}

void Engine::poll_control() {
  peers_.poll();
  migration_.poll();
  grants_.poll_downlink();
  congestion_.deliver_shares();
  if (plugins_.has_news()) [[unlikely]]
    hear_plugins();
}

// Counts what guards of plug-ins have found; contexts of quarantined plug-ins go to their fallback.
void Engine::hear_plugins() {
  plugins_.begin_news();
  for (unsigned i = 0; i < cc::kMaxPlugins; ++i) {
    if (plugins_.take_news(i, core_.counters)) {
      congestion_.leave_plugin(static_cast<cc::AlgorithmId>(cc::kAlgorithms + i));
    }
  }
}

void Engine::run_qp_timers() {
  std::uint32_t index;
  while ((index = core_.qp_timers.pop_due(core_.now)) != pacing::DeadlineQueue::kNone) {
    if (core_.qps[index] == nullptr) continue;
    requester_.on_timer(*core_.qps[index]);
    congestion_.perform();
  }
}

}  // namespace paceline::transport
