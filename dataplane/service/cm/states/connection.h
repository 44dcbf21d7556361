// One end of a connection, as the InfiniBand specification has it (volume 1, 12.9: states and
// transitions; 12.10: timers). It is given what the program asks, what the other end says and what
// the clock says, and answers with messages to send and notices for the program. It has no socket,
// reads no clock and knows no other connection.
//
// Not here: automatic path migration, and timers that a peer asks for but for MRA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/mad/mad.h"

namespace paceline::service::cm {

// What a program says of its end in connect and accept (rdma_conn_param).
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
  response,  // the other end accepts: the program answers with accept
  established,
  rejected,      // status: reason of the REJ
  unreachable,   // status: -ETIMEDOUT
  disconnected,  // status: 0 or -ETIMEDOUT
  timewait_over,
};
struct Notice {
  NoticeKind kind = NoticeKind::response;
  int status = 0;
  Mad cause{};  // the message that it comes from, for its fields and its private data
};

struct Actions {
  std::vector<Mad> send;
  std::vector<Notice> notices;
};

// What queue pairs of a connection are set to.
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

  // How long a message waits for its answer before it is sent again, and how often (12.7.27;
  // Linux's rdma_cm uses the same).
  static constexpr std::uint8_t kResponseTimeout = 20;  // 4.096 us * 2^20 = 4.3 s
  static constexpr std::uint8_t kMostRetries = 15;

  // `id`: communication id, of no other connection. `guid`: of the own adapter. `psn`: with which
  // the other end begins.
  Connection(std::uint32_t id, std::uint64_t guid, std::uint32_t psn);

  // --- what the program asks: 0, or EINVAL where the state does not allow it ---
  // `request` has the service id, the path, the partition key and the private data.
  int connect(Nanos now, const Offer& offer, Mad request, Actions& out);
  // The passive end: `request` has arrived.
  int take_request(const Mad& request);
  // The passive end sends a REP, the active one, after a response, an RTU (without an offer).
  int accept(Nanos now, const Offer& offer, Actions& out);
  int confirm(Actions& out);
  int reject(std::uint16_t reason, std::span<const std::byte> private_data, Actions& out);
  int disconnect(Nanos now, Actions& out);
  // Data has come before the RTU (rdma_notify with IBV_EVENT_COMM_EST).
  int data_has_come(Actions& out);
  // The program forgets it: the last message, if one is due.
  void end(Nanos now, Actions& out);

  // --- what the other end says ---
  void receive(Nanos now, const Mad& mad, Actions& out);

  // --- what the clock says ---
  Nanos deadline() const { return deadline_; }
  void expire(Nanos now, Actions& out);

  State state() const { return state_; }
  std::uint32_t local_id() const { return local_id_; }
  std::uint32_t remote_id() const { return remote_id_; }
  const Agreed& agreed() const { return agreed_; }
  // Whether queue pairs may be moved to RTR and RTS: the other end's values are known.
  bool knows_peer() const {
    return state_ == State::req_received || state_ == State::rep_sent ||
           state_ == State::rep_received || state_ == State::established;
  }
  // Whether they may be initialised by this connection.
  bool under_way() const { return knows_peer() || state_ == State::req_sent; }

 private:
  Mad message(Attribute attribute) const;
  Mad with_data(Attribute attribute, std::span<const std::byte> data) const;
  Mad refusal(std::uint16_t reason) const;
  void send_and_wait(Nanos now, Mad mad, Actions& out);
  void enter_timewait(Nanos now);
  void stop();  // no more timers
  void receive_rep(const Mad& mad, Actions& out);
  void receive_rej(Nanos now, const Mad& mad, Actions& out);
  void receive_dreq(Nanos now, const Mad& mad, Actions& out);

  State state_ = State::idle;
  bool active_ = false;
  std::uint8_t retries_left_ = 0;
  std::uint32_t local_id_;
  std::uint32_t remote_id_ = 0;
  std::uint64_t guid_;
  std::uint64_t transaction_ = 0;
  std::uint32_t local_qp_ = 0;
  Nanos deadline_ = kNeverNanos;
  Nanos patience_{0};
  Agreed agreed_{};
  Mad last_{};  // sent, and sent again
};

}  // namespace paceline::service::cm
