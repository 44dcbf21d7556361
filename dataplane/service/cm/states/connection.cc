#include "dataplane/service/cm/states/connection.h"

#include <algorithm>
#include <cerrno>

#include "dataplane/base/units.h"

namespace paceline::service::cm {

namespace {

// 4.096 us * 2^exponent, the specification's encoding of times.
Nanos time_of(std::uint8_t exponent) {
  return {std::int64_t{4096} << std::min(exponent, Connection::kLongestTimeout)};
}

// Packets of a closed connection may still arrive for this long (12.9.8.4): twice a packet lifetime
// of 4.096 us * 2^16. No emulated fabric delays a packet for longer.
constexpr std::uint8_t kTimewait = 17;  // 0.54 s

}  // namespace

Connection::Connection(std::uint32_t id, std::uint64_t guid, std::uint32_t psn)
    : local_id_(id), guid_(guid), transaction_(id) {
  agreed_.receive_psn = psn;
}

Mad Connection::message(Attribute attribute) const {
  Mad mad;
  mad.attribute = attribute;
  mad.transaction = transaction_;
  mad.local_id = local_id_;
  mad.remote_id = remote_id_;
  return mad;
}

Mad Connection::with_data(Attribute attribute, std::span<const std::byte> data) const {
  Mad mad = message(attribute);
  std::copy_n(data.begin(), std::min(data.size(), private_bytes(attribute)),
              mad.private_data.begin());
  return mad;
}

Mad Connection::refusal(std::uint16_t reason) const {
  Mad mad = message(Attribute::rej);
  mad.reason = reason;
  switch (state_) {
    case State::req_received:
      mad.about = About::req;
      break;
    case State::rep_received:
      mad.about = About::rep;
      break;
    default:
      mad.about = About::other;
      break;
  }
  return mad;
}

void Connection::send_and_wait(Nanos now, Mad mad, Actions& out) {
  last_ = mad;
  retries_left_ = most_retries_;
  patience_ = time_of(response_timeout_);
  deadline_ = {now.count + patience_.count};
  out.send.push_back(mad);
}

void Connection::repeat(const Mad& mad, Actions& out) const {
  ++out.repeated;
  out.send.push_back(mad);
}

void Connection::stop() { deadline_ = kNeverNanos; }

void Connection::enter_timewait(Nanos now) {
  state_ = State::timewait;
  deadline_ = {now.count + time_of(kTimewait).count};
}

int Connection::connect(Nanos now, const Offer& offer, Mad request, Actions& out) {
  if (state_ != State::idle) return EINVAL;
  active_ = true;
  local_qp_ = offer.qp_number;
  request.attribute = Attribute::req;
  request.transaction = transaction_;
  request.local_id = local_id_;
  request.remote_id = 0;
  request.guid = guid_;
  request.qp_number = offer.qp_number;
  request.starting_psn = agreed_.receive_psn;
  request.responder_resources = offer.responder_resources;
  request.initiator_depth = offer.initiator_depth;
  request.flow_control = offer.flow_control;
  request.retry_count = offer.retry_count;
  request.rnr_retry_count = offer.rnr_retry_count;
  request.shared_receives = offer.shared_receives;
  request.remote_response_timeout = request.local_response_timeout = kResponseTimeout;
  request.most_retries = kMostRetries;
  agreed_.responder_resources = offer.responder_resources;
  agreed_.initiator_depth = offer.initiator_depth;
  agreed_.retry_count = offer.retry_count & 7;
  agreed_.path_mtu = request.path_mtu;
  agreed_.ack_timeout = request.path.ack_timeout;
  state_ = State::req_sent;
  send_and_wait(now, request, out);
  return 0;
}

int Connection::take_request(const Mad& request) {
  if (state_ != State::idle || request.attribute != Attribute::req) return EINVAL;
  state_ = State::req_received;
  transaction_ = request.transaction;
  remote_id_ = request.local_id;
  agreed_.remote_qp = request.qp_number;
  agreed_.send_psn = request.starting_psn;
  // The READs that one end starts use the responder resources of the other end.
  agreed_.responder_resources = request.initiator_depth;
  agreed_.initiator_depth = request.responder_resources;
  agreed_.retry_count = request.retry_count;
  agreed_.rnr_retry_count = request.rnr_retry_count;
  agreed_.path_mtu = request.path_mtu;
  agreed_.ack_timeout = request.path.ack_timeout;
  response_timeout_ = request.local_response_timeout;
  most_retries_ = request.most_retries;
  return 0;
}

int Connection::accept(Nanos now, const Offer& offer, Actions& out) {
  if (state_ != State::req_received) return EINVAL;
  Mad rep = with_data(Attribute::rep, offer.private_data);
  rep.guid = guid_;
  rep.qp_number = local_qp_ = offer.qp_number;
  rep.starting_psn = agreed_.receive_psn;
  rep.responder_resources = offer.responder_resources;
  rep.initiator_depth = offer.initiator_depth;
  rep.flow_control = offer.flow_control;
  rep.rnr_retry_count = offer.rnr_retry_count;
  rep.shared_receives = offer.shared_receives;
  agreed_.responder_resources = offer.responder_resources;
  agreed_.initiator_depth = offer.initiator_depth;
  state_ = State::rep_sent;
  send_and_wait(now, rep, out);
  return 0;
}

int Connection::confirm(Actions& out) {
  if (state_ != State::rep_received) return EINVAL;
  state_ = State::established;
  last_ = message(Attribute::rtu);
  out.send.push_back(last_);
  return 0;
}

int Connection::reject(std::uint16_t reason, std::span<const std::byte> private_data,
                       Actions& out) {
  if (state_ != State::req_received && state_ != State::rep_received && state_ != State::rep_sent)
    return EINVAL;
  Mad rej = refusal(reason);
  std::copy_n(private_data.begin(), std::min(private_data.size(), private_bytes(Attribute::rej)),
              rej.private_data.begin());
  out.send.push_back(rej);
  last_ = rej;
  stop();
  state_ = State::idle;
  return 0;
}

int Connection::disconnect(Nanos now, Actions& out) {
  if (state_ == State::established || state_ == State::rep_sent) {
    Mad dreq = message(Attribute::dreq);
    dreq.qp_number = agreed_.remote_qp;
    state_ = State::dreq_sent;
    send_and_wait(now, dreq, out);
    return 0;
  }
  if (state_ != State::dreq_received) return EINVAL;
  out.send.push_back(message(Attribute::drep));
  enter_timewait(now);
  return 0;
}

int Connection::data_has_come(Actions& out) {
  if (state_ == State::established) return EISCONN;
  if (state_ != State::rep_sent) return EINVAL;
  state_ = State::established;
  stop();
  out.notices.push_back({NoticeKind::established, 0, {}});
  return 0;
}

void Connection::end(Nanos now, Actions& out) {
  switch (state_) {
    case State::req_sent:
      out.send.push_back(refusal(reject_reason::timeout));
      out.send.back().about = About::req;
      break;
    case State::req_received:
    case State::rep_sent:
    case State::rep_received:
      out.send.push_back(refusal(reject_reason::consumer_defined));
      break;
    case State::established:
    case State::dreq_received:
      disconnect(now, out);
      return;
    case State::dreq_sent:
    case State::timewait:
      return;
    case State::idle:
      break;
  }
  state_ = State::idle;
  stop();
}

void Connection::receive(Nanos now, const Mad& mad, Actions& out) {
  switch (mad.attribute) {
    case Attribute::req:  // repeated
      if (state_ == State::rep_sent || (state_ == State::idle && rejected())) {
        repeat(last_, out);
      } else if (state_ == State::req_received) {
        Mad mra = message(Attribute::mra);
        mra.about = About::req;
        mra.service_timeout = 24;  // 69 s for the program to answer
        out.send.push_back(mra);
      }
      return;
    case Attribute::mra:
      if (state_ != (mad.about == About::req ? State::req_sent : State::rep_sent)) return;
      patience_ = time_of(mad.service_timeout);
      deadline_ = {now.count + patience_.count};
      return;
    case Attribute::rep:
      return receive_rep(mad, out);
    case Attribute::rtu:
      if (state_ != State::rep_sent) return;
      state_ = State::established;
      stop();
      out.notices.push_back({NoticeKind::established, 0, mad});
      return;
    case Attribute::rej:
      return receive_rej(now, mad, out);
    case Attribute::dreq:
      return receive_dreq(now, mad, out);
    case Attribute::drep:
      if (state_ != State::dreq_sent) return;
      enter_timewait(now);
      out.notices.push_back({NoticeKind::disconnected, 0, mad});
      return;
    case Attribute::sidr_req:
    case Attribute::sidr_rep:
      return;
  }
}

void Connection::receive_rep(const Mad& mad, Actions& out) {
  // The RTU was lost: repeat it. Before `established` the program has not sent one yet.
  const bool confirmed = state_ == State::established && active_;
  if (confirmed || (state_ == State::idle && rejected())) repeat(last_, out);
  if (state_ != State::req_sent) return;
  state_ = State::rep_received;
  stop();
  remote_id_ = mad.local_id;
  agreed_.remote_qp = mad.qp_number;
  agreed_.send_psn = mad.starting_psn;
  agreed_.initiator_depth = mad.responder_resources;
  agreed_.responder_resources = mad.initiator_depth;
  agreed_.rnr_retry_count = mad.rnr_retry_count;
  out.notices.push_back({NoticeKind::response, 0, mad});
}

void Connection::receive_rej(Nanos now, const Mad& mad, Actions& out) {
  switch (state_) {
    case State::idle:
    case State::timewait:
      return;
    case State::req_sent:
    case State::req_received:
    case State::rep_sent:
      stop();
      state_ = State::idle;
      break;
    case State::rep_received:
    case State::established:
    case State::dreq_sent:
    case State::dreq_received:
      enter_timewait(now);
      break;
  }
  out.notices.push_back({NoticeKind::rejected, mad.reason, mad});
}

void Connection::receive_dreq(Nanos now, const Mad& mad, Actions& out) {
  switch (state_) {
    case State::rep_sent:  // the RTU was lost
    case State::established:
    case State::dreq_sent:  // both ends disconnect; the program knows
      break;
    case State::timewait:  // the DREP was lost
    case State::idle:
      repeat(message(Attribute::drep), out);
      return;
    default:
      return;
  }
  const bool both = state_ == State::dreq_sent;
  stop();
  state_ = State::dreq_received;
  out.notices.push_back({NoticeKind::disconnected, 0, mad});
  if (both) disconnect(now, out);
}

void Connection::expire(Nanos now, Actions& out) {
  if (now.count < deadline_.count) return;
  if (state_ == State::timewait) {
    state_ = State::idle;
    stop();
    out.notices.push_back({NoticeKind::timewait_over, 0, {}});
    return;
  }
  if (retries_left_ > 0) {
    --retries_left_;
    deadline_ = {now.count + patience_.count};
    repeat(last_, out);
    return;
  }
  if (state_ == State::dreq_sent) {
    enter_timewait(now);
    out.notices.push_back({NoticeKind::disconnected, -ETIMEDOUT, {}});
    return;
  }
  out.send.push_back(refusal(reject_reason::timeout));
  stop();
  state_ = State::idle;
  out.notices.push_back({NoticeKind::unreachable, -ETIMEDOUT, {}});
}

}  // namespace paceline::service::cm
