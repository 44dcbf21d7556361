// End-to-end flow control (InfiniBand vol. 1, 9.7.7.2). An acknowledgement says how many messages
// have been completed (MSN) and for how many more there are receive requests (credits). A request
// that takes one is sent freely up to that limit. Of the first one beyond it a single packet is
// sent, which asks for an acknowledgement and so for news of credits. That news comes when the
// packet has taken a receive request: the first of a SEND, the last of a WRITE with immediate,
// which therefore goes as a whole. READs, atomics and WRITEs without immediate need none.
//
// Until the peer has named a limit, none is kept to: the specification would have the first message
// probe, which costs a round trip against every peer that has no limit to tell.
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"

namespace paceline::transport {

namespace {

// Signed distance of 24-bit message numbers.
std::int32_t ahead(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

}  // namespace

// How many messages beyond the limit the request is; not positive: within.
std::int32_t RequesterPart::sends_beyond_credits(const RequesterState& r, const SendEntry& entry) {
  return takes_receive(entry.request.opcode) ? ahead(entry.ssn, r.credit_limit) : 0;
}

void RequesterPart::update_credits(QueuePair& qp, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  if (!wire::is_credit_limited(aeth.value())) {
    if (!r.credit_limited) return;
    r.credit_limited = false;
    --r.ordered;
  } else {
    const std::uint32_t limit = (aeth.msn + wire::credits_from_code(aeth.value())) & 0xFF'FFFFU;
    if (!r.credit_limited) {
      r.credit_limited = true;
      r.credit_limit = limit;
      ++r.ordered;
    } else if (ahead(limit, r.credit_limit) > 0) {
      r.credit_limit = limit;  // an older answer may come later, and say less
    }
  }
  check_order(qp);
  core_.actions.settle(qp);
}

// The largest code that promises no more than there is. What is shared is promised to nobody. The
// message in progress is not counted by the MSN yet, but has its receive request.
wire::Aeth ResponderPart::ack_of(const QueuePair& qp, std::uint32_t msn) {
  if (!qp.responder.tells_credits) [[likely]]
    return wire::Aeth::ack(msn);
  const std::size_t credits =
      qp.config.receive_queue->size() + (qp.responder.receive_taken ? 1 : 0);
  std::uint8_t code = wire::kCreditUnlimited - 1;
  while (wire::credits_from_code(code) > credits) --code;
  return wire::Aeth::ack(msn, code);
}

}  // namespace paceline::transport
