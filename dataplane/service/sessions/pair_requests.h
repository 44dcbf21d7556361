// Requests for queue pairs and address handles.
#pragma once

#include <cstdint>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/sessions/reply.h"
#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

class PairRequests {
 public:
  explicit PairRequests(SessionState& state) : state_(state) {}

  Status create_qp(const attach::Message& request, Reply& reply);
  // An XRC target that this session or another one has made.
  Status open_qp(const attach::Message& request, Reply& reply);
  Status modify_qp(const attach::Message& request);
  Status query_qp(const attach::Message& request, Reply& reply);
  Status destroy_qp(const attach::Message& request, Reply& reply);
  Status limit_rate(const attach::Message& request);
  Status create_ah(const attach::Message& request, Reply& reply);
  Status destroy_ah(const attach::Message& request);
  // On the worker: the session no longer has the XRC target; when the last session leaves, it is
  // destroyed.
  static void leave_target(SessionState& state, Picos now, PairObject& pair, bool abandoned);

 private:
  Status create_target(const attach::CreateQpRequest& request, Reply& reply);
  Status path_of(const attach::AddressVector& from, std::uint32_t local_qp, std::uint32_t remote_qp,
                 transport::QpPath& path) const;
  // For an unreliable queue pair: a posted request is not sent yet.
  bool sending(const PairObject& pair);
  Status destroy_sent(std::uint32_t handle, int looks, Reply& reply);
  template <class Join>
  Status make_in_engine(PairObject& pair, const transport::QpConfig& config, Join join);
  Status find_queues(const attach::CreateQpRequest& request, PairObject& pair);
  void release(PairObject& pair);

  SessionState& state_;
};

}  // namespace paceline::service
