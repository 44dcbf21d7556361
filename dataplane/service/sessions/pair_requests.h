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
  Status modify_qp(const attach::Message& request);
  Status query_qp(const attach::Message& request, Reply& reply);
  Status destroy_qp(const attach::Message& request, Reply& reply);
  Status limit_rate(const attach::Message& request);
  Status create_ah(const attach::Message& request, Reply& reply);
  Status destroy_ah(const attach::Message& request);

 private:
  Status path_of(const attach::AddressVector& from, std::uint32_t local_qp, std::uint32_t remote_qp,
                 transport::QpPath& path) const;
  // Of an unreliable one: something is posted that is not sent.
  bool sending(const PairObject& pair);
  Status destroy_sent(std::uint32_t handle, int looks, Reply& reply);
  void release(PairObject& pair);

  SessionState& state_;
};

}  // namespace paceline::service
