// Requests for completion queues, shared receive queues, and the XRC domains of these.
#pragma once

#include <cstdint>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/sessions/reply.h"
#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

class QueueRequests {
 public:
  explicit QueueRequests(SessionState& state) : state_(state) {}

  Status create_cq(const attach::Message& request, Reply& reply);
  Status resize_cq(const attach::Message& request, Reply& reply);
  Status destroy_cq(const attach::Message& request);
  Status open_domain(const attach::Message& request, Reply& reply);
  Status create_srq(const attach::Message& request, Reply& reply);
  Status modify_srq(const attach::Message& request, Reply& reply);
  Status query_srq(const attach::Message& request, Reply& reply);
  Status destroy_srq(const attach::Message& request);

 private:
  std::uint64_t unfinished_sends(const CompletionAdapter& queue);
  // What a shared XRC receive queue has in addition.
  Status find_domain(const attach::CreateSrqRequest& request, SharedReceiveObject& srq);
  void add_to_worker(SharedReceiveObject& srq);

  SessionState& state_;
};

}  // namespace paceline::service
