#include "dataplane/transport/message/request_order.h"

#include <algorithm>

#include "dataplane/transport/message/scoreboard.h"

namespace paceline::transport {

namespace {

// Signed distance of 24-bit message numbers.
std::int32_t ahead(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

}  // namespace

// How many messages beyond the limit the request is; zero or less: within it.
std::int32_t RequestOrder::sends_beyond_credits(const RequesterState& r, const SendEntry& entry) {
  if (!takes_receive(entry.request.opcode)) return 0;
  // A limit may come late, in an answer that others overtook. Requests completed since had their
  // receive request. Without this, the first incomplete message would wait for ever.
  const std::int32_t first = ahead(entry.ssn, r.queue.front().ssn) + 1;
  return std::min(ahead(entry.ssn, r.credit_limit), first);
}

void RequestOrder::update_credits(EngineCore& core, QueuePair& qp, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  if (!wire::is_credit_limited(aeth.value())) {
    if (!r.credit_limited) return;
    r.credit_limited = false;
    --r.ordering_constraints;
  } else {
    const std::uint32_t limit = (aeth.msn + wire::credits_from_code(aeth.value())) & 0xFF'FFFFU;
    if (!r.credit_limited) {
      r.credit_limited = true;
      r.credit_limit = limit;
      ++r.ordering_constraints;
    } else if (ahead(limit, r.credit_limit) > 0) {
      r.credit_limit = limit;  // an older answer may come later, with a lower limit
    }
  }
  check(qp);
  core.actions.settle(qp);
}

// Whether the request at the cursor may proceed. It may be held up by the initiator depth
// (9.7.2.6), the fence, a send queue that is being drained, and the peer's credits. Of the first
// message beyond the credits, one packet may go (9.7.7.2). A WRITE takes its receive request only
// with its last packet, so no answer to an earlier packet can bring the credit: all of it may go.
void RequestOrder::check(QueuePair& qp) {
  RequesterState& r = qp.requester;
  r.stops &= static_cast<std::uint8_t>(~requester_stop::order);
  if (r.position.request() == r.queue.tail()) return;
  const SendEntry& entry = r.queue.at(r.position.request());
  if ((entry.has_response && r.outstanding_reads >= qp.config.max_rd_atomic) ||
      (entry.request.fence && r.position.packet() == 0 && r.outstanding_reads != 0) ||
      ((r.drain.active() || r.turning) && r.position.packet() == 0 &&
       r.position.next() == r.position.end()) ||
      beyond_credits(r, entry) >
          (r.position.packet() == 0 || is_write(entry.request.opcode) ? 1 : 0)) {
    r.stops |= requester_stop::order;
  }
}

// SQD is reached when every request that was begun is complete (vol. 1, 10.3.1.5).
void RequestOrder::check_drained(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  if ((!r.drain.waits() && !r.turning) || r.position.oldest() != r.position.end() ||
      r.position.packet() != 0)
    return;
  if (r.turning) {
    r.turning = false;
    --r.ordering_constraints;
    Scoreboard::begin(core, qp);
    check(qp);
  }
  if (r.drain.waits() && r.drain.finish())
    core.events.push({AsyncEventKind::sq_drained, qp.number});
}

void RequestOrder::turn_selective(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.selective == nullptr || r.selective || r.turning || r.queue.empty()) return;
  r.turning = true;
  ++r.ordering_constraints;
  check(qp);
  check_drained(core, qp);
  core.actions.settle(qp);
}

void RequestOrder::drain(EngineCore& core, QueuePair& qp, bool notify) {
  RequesterState& r = qp.requester;
  r.drain.begin(notify);
  ++r.ordering_constraints;
  check(qp);
  check_drained(core, qp);
  core.actions.settle(qp);
}

void RequestOrder::undrain(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  r.drain.end();
  --r.ordering_constraints;
  check(qp);
  core.actions.resume_and_report(qp);
}

}  // namespace paceline::transport
