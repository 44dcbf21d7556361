// The commands that librdmacm writes to /dev/infiniband/rdma_cm (<rdma/rdma_user_cm.h>, ABI version
// 4), carried out by the connection manager. Errors are those of Linux's rdma_ucm; multicast, which
// is not offered, fails with EOPNOTSUPP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/manager/connection_manager.h"

namespace paceline::service::cm {

struct UcmRequest {
  std::uint32_t channel = 0;
  std::uint32_t command = 0;            // RDMA_USER_CM_CMD_*
  std::span<const std::byte> body{};    // what follows the header; its length is the header's
  std::size_t room = 0;                 // bytes that the response may have
  std::span<const std::byte> option{};  // SET_OPTION: the value
  std::uint32_t other_channel = 0;      // MIGRATE_ID: the channel of the descriptor; 0: none
};

struct UcmResult {
  int error = 0;  // errno; GET_EVENT: EAGAIN if no event waits
  std::vector<std::byte> response;
};

class UcmCommands {
 public:
  explicit UcmCommands(ConnectionManager& manager) : manager_(manager) {}
  UcmResult run(Nanos now, const UcmRequest& request);

 private:
  using Command = void (UcmCommands::*)(Nanos, const UcmRequest&, UcmResult&);
  static Command command(std::uint32_t number);

  void create_id(Nanos now, const UcmRequest& request, UcmResult& out);
  void destroy_id(Nanos now, const UcmRequest& request, UcmResult& out);
  void bind_ip(Nanos now, const UcmRequest& request, UcmResult& out);
  void bind(Nanos now, const UcmRequest& request, UcmResult& out);
  void resolve_ip(Nanos now, const UcmRequest& request, UcmResult& out);
  void resolve_address(Nanos now, const UcmRequest& request, UcmResult& out);
  void resolve_route(Nanos now, const UcmRequest& request, UcmResult& out);
  void query_route(Nanos now, const UcmRequest& request, UcmResult& out);
  void query(Nanos now, const UcmRequest& request, UcmResult& out);
  void connect(Nanos now, const UcmRequest& request, UcmResult& out);
  void listen(Nanos now, const UcmRequest& request, UcmResult& out);
  void accept(Nanos now, const UcmRequest& request, UcmResult& out);
  void reject(Nanos now, const UcmRequest& request, UcmResult& out);
  void disconnect(Nanos now, const UcmRequest& request, UcmResult& out);
  void init_qp_attr(Nanos now, const UcmRequest& request, UcmResult& out);
  void get_event(Nanos now, const UcmRequest& request, UcmResult& out);
  void set_option(Nanos now, const UcmRequest& request, UcmResult& out);
  void notify(Nanos now, const UcmRequest& request, UcmResult& out);
  void migrate_id(Nanos now, const UcmRequest& request, UcmResult& out);
  void multicast(Nanos now, const UcmRequest& request, UcmResult& out);

  // nullptr, with the error in `out`, if there is no such id or, with `device`, if the id has no
  // NIC instance yet.
  CmId* find(const UcmRequest& request, std::uint32_t id, UcmResult& out, bool device = false);

  ConnectionManager& manager_;
};

}  // namespace paceline::service::cm
