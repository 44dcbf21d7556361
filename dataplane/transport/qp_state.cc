#include "dataplane/transport/qp_state.h"

#include <algorithm>
#include <new>

#include "dataplane/base/undo.h"
#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/migration.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/transport/ends/responder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/scoreboard.h"

namespace paceline::transport {

QueuePair* QpStatePart::create(const QpConfig& config) {
  // A number that was just freed comes last, as on NICs. Packets to it may still be in flight, or a
  // peer that does not know may send them again for minutes (datagrams name no connection).
  const auto made = static_cast<std::uint32_t>(core_.qps.size());
  if (made < EngineCore::kMaxQps && free_.size() <= core_.config.spare_queue_pairs) {
    core_.qp_timers.reserve(roomy(made + 1));
    QueuePair& pair = core_.qp_storage.emplace_back(core_.qp_number(made, 0), config);
    Undo not_stored([&] { core_.qp_storage.pop_back(); });
    core_.qps.push_back(&pair);
    not_stored.keep();
    return &pair;
  }
  if (free_.empty()) return nullptr;
  QueuePair& slot = *free_.front();
  const std::uint32_t index = core_.qp_index(slot);
  const std::uint32_t generation = (slot.number >> EngineCore::kQpnIndexBits) + 1;
  slot = QueuePair(core_.qp_number(index, generation), config);
  free_.pop_front();
  core_.qps[index] = &slot;
  return &slot;
}

void QpStatePart::destroy(QueuePair& qp) {
  fail(qp);
  if (core_.management_qp == qp.number) core_.management_qp = 0;
  requester_.discard(qp);
  responder_.discard(qp);
  congestion_.detach(qp);
  const std::uint32_t index = core_.qp_index(qp);
  core_.qp_timers.cancel(index);
  core_.qps[index] = nullptr;
  // Its number stays, its memory is freed: the place may stay unused for long.
  QpConfig least;
  least.send_queue_depth = 1;
  least.max_dest_rd_atomic = 0;
  try {
    free_.push_back(&qp);
    qp = QueuePair(qp.number, least);
  } catch (const std::bad_alloc&) {
    // It keeps its memory. If it has no place in the list, it is not used again.
  }
}

void QpStatePart::fail(QueuePair& qp) {
  QpFailure::fail(core_, qp, CompletionStatus::flushed);
  congestion_.perform();
}

bool QpStatePart::connect(QueuePair& qp, const QpAddress& remote, Psn first_psn,
                          std::uint16_t source_port) {
  if (qp.config.type == QpType::ud) return false;  // nothing to connect to
  if (qp.state != QpState::reset && qp.state != QpState::init) return false;
  qp.path = {remote.ip, remote.mac, source_port, qp.config.traffic_class};
  qp.remote_number = remote.qp_number;
  qp.responder.position.start(remote.first_psn);
  to_rtr(qp);
  to_rts(qp, first_psn);
  return true;
}

// All work is gone, without a completion (10.3.1.1).
void QpStatePart::to_reset(QueuePair& qp) {
  if (qp.context != kNoIndex || qp.config.type == QpType::ud) QpFailure::drop_work(core_, qp);
  congestion_.perform();
  requester_.discard(qp);
  responder_.discard(qp);
  congestion_.detach(qp);
  core_.qp_timers.cancel(core_.qp_index(qp));
  ReceiveQueue* const receives = qp.config.receive_queue;
  if (receives != nullptr && !receives->shared()) receives->clear();
  qp = QueuePair(qp.number, QpConfig(qp.config));
}

// Path, MTU, peer's number and first expected PSN are set.
void QpStatePart::to_rtr(QueuePair& qp) {
  if (qp.config.type != QpType::ud) qp.config.traffic_class = qp.path.traffic_class;
  qp.mtu = qp.config.path_mtu == 0 ? core_.config.payload_mtu : qp.config.path_mtu;
  if (qp.config.type == QpType::ud) {  // each datagram says where it goes
    qp.mtu = core_.config.payload_mtu;
    qp.state = QpState::rtr;
    return;
  }
  qp.header = wire::make_header_template(core_.flow_to(qp.path));
  if (is_xrc(qp.config.type)) {
    wire::use_xrc(qp.header, qp.config.type == QpType::xrc_initiator);
  }
  qp.responder.responses = ResponseQueue(qp.config.max_dest_rd_atomic);
  congestion_.attach(qp, qp.path.ip, qp.path.mac);
  qp.state = QpState::rtr;
  migration_.offer_selective(qp);
}

void QpStatePart::to_rts(QueuePair& qp, Psn first_psn) {
  RequesterState& r = qp.requester;
  r.position.start(first_psn, r.queue.tail());
  r.tail_psn = first_psn;
  r.retries.renew(qp.config.retry_count, qp.config.rnr_retry);
  r.ack_requests.ask_next(core_.config.ack_every);
  qp.state = QpState::rts;
  Scoreboard::begin(core_, qp);
}

ModifyResult QpStatePart::check_values(const QueuePair& qp, const QpAttributes& a,
                                       std::uint32_t mask) const {
  const auto bad = [mask](std::uint32_t attribute, bool wrong) {
    return (mask & attribute) != 0 && wrong;
  };
  using namespace qp_attribute;
  const bool mtu_fits =
      a.path_mtu == core_.config.payload_mtu ||
      (a.path_mtu >= 256 && a.path_mtu <= 4096 && (a.path_mtu & (a.path_mtu - 1)) == 0 &&
       a.path_mtu <= core_.config.payload_mtu);
  const struct {
    std::uint32_t attribute;
    bool wrong;
  } rules[] = {
      {access_flags, (a.access & ~access::remote) != 0},
      {pkey_index, a.pkey_index != 0},
      {port, a.port == 0 || a.port > core_.config.addressed_ports},
      {path, a.path.traffic_class >= kTrafficClasses || a.path.ip == wire::IpAddress{}},
      {path_mtu, !mtu_fits},
      {timeout, a.timeout.count < 0 || a.timeout >= kNoTimeout},
      {retry_count, a.retry_count > 7},
      {rnr_retry, a.rnr_retry > 7},
      {max_rd_atomic, a.max_rd_atomic > kMaxRdAtomic},
      {max_dest_rd_atomic, a.max_dest_rd_atomic > kMaxRdAtomic},
      {min_rnr_timer, a.min_rnr_timer > 31},
      {dest_qp_number, a.dest_qp_number > wire::kMaxQpn},
  };
  for (const auto& rule : rules) {
    if (bad(rule.attribute, rule.wrong)) return {ModifyError::bad_value, rule.attribute};
  }
  // Requests that the peer has in progress cannot be revoked.
  if ((mask & max_dest_rd_atomic) != 0 && can_receive(qp.state) &&
      qp.responder.responses.any_due()) {
    return {ModifyError::not_drained, max_dest_rd_atomic};
  }
  return {};
}

ModifyResult QpStatePart::modify(QueuePair& qp, const QpAttributes& a, std::uint32_t mask) {
  using namespace qp_attribute;
  if ((mask & current_state) != 0 && a.current_state != qp.state) {
    return {ModifyError::wrong_current_state, current_state};
  }
  const QpState from = qp.state;
  const QpState to = (mask & state) != 0 ? a.state : from;
  if (const ModifyResult r = check_transition(qp.config.type, from, to, mask); !r.ok()) return r;
  if (const ModifyResult r = check_values(qp, a, mask); !r.ok()) return r;
  if (from == QpState::sqd && (to == QpState::rts || to == QpState::sqd) &&
      !qp.requester.drain.done()) {
    return {ModifyError::not_drained, state};
  }

  // From here on nothing is refused.
  if (to == QpState::error) {
    fail(qp);
    return {};
  }
  if (to == QpState::reset) {
    to_reset(qp);
    return {};
  }
  QpConfig& c = qp.config;
  const auto take = [mask](std::uint32_t attribute, auto& into, const auto& value) {
    if ((mask & attribute) != 0) into = value;
  };
  // Peers read only what they may read from now on.
  if ((mask & access_flags) != 0) core_.pool.end_loans();
  take(access_flags, c.access, a.access);
  take(qkey, c.qkey, a.qkey);
  take(path, qp.path, a.path);
  take(path_mtu, c.path_mtu, a.path_mtu);
  take(timeout, c.retransmit_timeout, a.timeout.count == 0 ? kNoTimeout : a.timeout);
  take(retry_count, c.retry_count, a.retry_count);
  take(rnr_retry, c.rnr_retry, a.rnr_retry);
  take(max_rd_atomic, c.max_rd_atomic, a.max_rd_atomic);
  take(max_dest_rd_atomic, c.max_dest_rd_atomic, a.max_dest_rd_atomic);
  take(min_rnr_timer, c.min_rnr_timer, a.min_rnr_timer);
  take(dest_qp_number, qp.remote_number, a.dest_qp_number);
  if ((mask & rq_psn) != 0) qp.responder.position.start(a.rq_psn);

  if (from == QpState::sqd && (mask & max_dest_rd_atomic) != 0) {
    qp.responder.responses = ResponseQueue(c.max_dest_rd_atomic);
  }
  if (from == QpState::reset) qp.state = QpState::init;
  if (from == QpState::init && to == QpState::rtr) to_rtr(qp);
  if (from == QpState::rtr && to == QpState::rts) to_rts(qp, a.sq_psn);
  if (from == QpState::rts && to == QpState::sqd) {
    qp.state = QpState::sqd;
    RequestOrder::drain(core_, qp, (mask & notify_drained) != 0 && a.notify_drained);
    congestion_.perform();
  }
  if (from == QpState::sqd && to == QpState::rts) {
    qp.state = QpState::rts;
    RequestOrder::undrain(core_, qp);
    congestion_.perform();
  }
  if (from == QpState::sqe && to == QpState::rts) qp.state = QpState::rts;
  return {};
}

QpAttributes QpStatePart::query(const QueuePair& qp) const {
  QpAttributes a;
  const QpConfig& c = qp.config;
  a.state = a.current_state = qp.state;
  a.access = c.access;
  a.qkey = c.qkey;
  a.path = qp.path;
  a.path_mtu = static_cast<std::uint16_t>(qp.mtu);
  a.timeout = c.retransmit_timeout >= kNoTimeout ? Picos{0} : c.retransmit_timeout;
  a.retry_count = c.retry_count;
  a.rnr_retry = c.rnr_retry;
  a.min_rnr_timer = c.min_rnr_timer;
  a.max_rd_atomic = c.max_rd_atomic;
  a.max_dest_rd_atomic = c.max_dest_rd_atomic;
  a.rq_psn = qp.responder.position.expected();
  a.sq_psn = qp.requester.position.next();
  a.dest_qp_number = qp.remote_number;
  return a;
}

void QpStatePart::fail_overrun() {
  core_.cq_overrun = false;
  for (QueuePair* qp : core_.qps) {
    if (qp == nullptr || qp->state == QpState::error) continue;
    for (CompletionQueue* queue : {qp->config.send_cq, qp->config.receive_cq}) {
      if (queue == nullptr || !queue->overflowed()) continue;
      if (queue->report_error()) {
        core_.events.push({AsyncEventKind::cq_error, 0, queue});
      }
      if (qp->state == QpState::error) continue;
      fail(*qp);
      core_.events.push({AsyncEventKind::qp_fatal, qp->number});
    }
  }
}

}  // namespace paceline::transport
