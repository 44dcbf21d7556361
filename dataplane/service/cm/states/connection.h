// One end of a connection: the state machine of the InfiniBand specification (volume 1, 12.9:
// states and transitions; 12.10: timers). Its inputs are calls of the program, messages of the
// other end and the time; its outputs are messages to send and notices for the program. It has no
// socket, reads no clock and knows no other connection.
//
// Not implemented: automatic path migration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/mad/mad.h"

namespace paceline::service::cm {

// What a program offers in connect and accept (rdma_conn_param).
struct Offer {
  std::uint32_t qp_number = 0;
  std::uint8_t shared_receives = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::span<const std::byte> private_data{};
};

enum class NoticeKind : std::uint8_t {
  response,  // the other end accepts; the program must confirm with accept
  established,
  rejected,      // status: reason of the REJ
  unreachable,   // status: -ETIMEDOUT
  disconnected,  // status: 0 or -ETIMEDOUT
  timewait_over,
};
struct Notice {
  NoticeKind kind = NoticeKind::response;
  int status = 0;
  Mad cause{};  // the message that caused it, with its private data
};

struct Actions {
  std::vector<Mad> send;
  std::uint32_t repeated = 0;  // messages among these that were sent before
  std::vector<Notice> notices;
};

// The attributes of the connection's queue pair.
struct Agreed {
  std::uint32_t remote_qp = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t send_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t path_mtu = 0;
  std::uint8_t ack_timeout = 0;
};

class Connection {
 public:
  enum class State : std::uint8_t {
    idle,
    req_sent,
    req_received,
    rep_sent,
    rep_received,
    established,
    dreq_sent,
    dreq_received,
    timewait,
  };

  // How long this end waits for an answer before it repeats a message, and the most repetitions
  // (12.7.27; the values are those of Linux's rdma_cm).
  // The passive end takes both from the REQ.
  static constexpr std::uint8_t kResponseTimeout = 20;  // 4.096 us * 2^20 = 4.3 s
  static constexpr std::uint8_t kMostRetries = 15;
  static constexpr std::uint8_t kLongestTimeout = 24;  // 69 s, whatever a peer asks for

  // `id`: a unique communication id. `guid`: of this end's adapter. `psn`: the first PSN that the
  // other end sends.
  Connection(std::uint32_t id, std::uint64_t guid, std::uint32_t psn);

  // --- calls of the program; they return 0, or EINVAL if the state does not allow them ---
  // Active end. `request` holds service id, path, partition key and private data.
  int connect(Nanos now, const Offer& offer, Mad request, Actions& out);
  // Passive end: `request` has arrived.
  int take_request(const Mad& request);
  // The passive end accepts and sends a REP; the active end confirms a response with an RTU.
  int accept(Nanos now, const Offer& offer, Actions& out);
  int confirm(Actions& out);
  int reject(std::uint16_t reason, std::span<const std::byte> private_data, Actions& out);
  int disconnect(Nanos now, Actions& out);
  // Data arrived before the RTU did (rdma_notify with IBV_EVENT_COMM_EST).
  int data_has_come(Actions& out);
  // The program destroys its id: sends the last message, if one is due. If not idle() afterwards,
  // the other end may need more messages: a repeated DREQ, or a DREP.
  void end(Nanos now, Actions& out);
  bool idle() const { return state_ == State::idle; }

  // --- messages of the other end ---
  void receive(Nanos now, const Mad& mad, Actions& out);

  // --- timers ---
  Nanos deadline() const { return deadline_; }
  void expire(Nanos now, Actions& out);

  State state() const { return state_; }
  std::uint32_t local_id() const { return local_id_; }
  std::uint32_t remote_id() const { return remote_id_; }
  const Agreed& agreed() const { return agreed_; }
  // Whether the queue pair may move to RTR and RTS: the other end's attributes are known.
  bool knows_peer() const {
    return state_ == State::req_received || state_ == State::rep_sent ||
           state_ == State::rep_received || state_ == State::established;
  }
  // Whether the queue pair may move to INIT.
  bool under_way() const { return knows_peer() || state_ == State::req_sent; }

 private:
  Mad message(Attribute attribute) const;
  Mad with_data(Attribute attribute, std::span<const std::byte> data) const;
  Mad refusal(std::uint16_t reason) const;
  void send_and_wait(Nanos now, Mad mad, Actions& out);
  void repeat(const Mad& mad, Actions& out) const;
  void enter_timewait(Nanos now);
  void stop();  // no more timers
  bool rejected() const { return last_.attribute == Attribute::rej; }
  void receive_rep(const Mad& mad, Actions& out);
  void receive_rej(Nanos now, const Mad& mad, Actions& out);
  void receive_dreq(Nanos now, const Mad& mad, Actions& out);

  State state_ = State::idle;
  bool active_ = false;
  std::uint8_t retries_left_ = 0;
  std::uint8_t response_timeout_ = kResponseTimeout;
  std::uint8_t most_retries_ = kMostRetries;
  std::uint32_t local_id_;
  std::uint32_t remote_id_ = 0;
  std::uint64_t guid_;
  std::uint64_t transaction_ = 0;
  std::uint32_t local_qp_ = 0;
  Nanos deadline_ = kNeverNanos;
  Nanos patience_{0};
  Agreed agreed_{};
  Mad last_{};  // repeated until it is answered, or when the message that it answers is repeated
};

}  // namespace paceline::service::cm
