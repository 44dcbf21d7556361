// Requests of a program's rdma_cm: a connection of its own beside those of its devices.
#pragma once

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/cm/cm_service.h"
#include "dataplane/service/sessions/reply.h"
#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

class CmRequests {
 public:
  CmRequests(SessionState& state, cm::CmService& service) : state_(state), service_(service) {}
  CmRequests(const CmRequests&) = delete;
  CmRequests& operator=(const CmRequests&) = delete;
  // Ends its channels, and their ids with them.
  ~CmRequests();

  bool opened() const { return opened_; }
  Status open(const attach::Message& request);
  Status channel(Reply& reply);
  Status command(const attach::Message& request, Reply& reply);
  cm::CmCounts counts() const { return service_.counts(state_.number); }

 private:
  SessionState& state_;
  cm::CmService& service_;
  cm::Visible seen_;
  bool opened_ = false;
};

}  // namespace paceline::service
