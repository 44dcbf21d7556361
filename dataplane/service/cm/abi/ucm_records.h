// Fills the records of <rdma/rdma_user_cm.h>. Fields of a response that have no value here are
// zero.
#pragma once

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include <cstddef>
#include <cstdint>

#include "dataplane/service/cm/ids/cm_id.h"
#include "dataplane/service/cm/ids/event.h"
#include "dataplane/service/cm/tables/nic_book.h"

namespace paceline::service::cm {

rdma_ucm_event_resp event_record(const Event& event);
rdma_ucm_query_route_resp route_record(const CmId& id, const NicBook& nics);
rdma_ucm_query_addr_resp address_record(const CmId& id, const NicBook& nics);
// GIDs instead of IP addresses, as sockaddr_ib.
rdma_ucm_query_addr_resp gid_record(const CmId& id, const NicBook& nics);
// The path of a resolved route in the format of a subnet administrator; no path before that.
struct PathRecord {  // rdma_ucm_query_path_resp with one path
  std::uint32_t paths = 0;
  std::uint32_t reserved = 0;
  ib_path_rec_data path{};
};
static_assert(offsetof(PathRecord, path) == sizeof(rdma_ucm_query_path_resp));
PathRecord path_record(const CmId& id, const NicBook& nics);
ib_uverbs_qp_attr qp_record(std::uint32_t state, const QpAttributes& values);

}  // namespace paceline::service::cm
