// Functions that must exist, and offer nothing here: each refuses as its manual page says.
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/abi/results.h"

using paceline::verbs::refuse;
using paceline::verbs::result;

// Extended connection establishment.
PACELINE_VERBS_EXPORT int ibv_set_ece(ibv_qp* /*qp*/, ibv_ece* /*ece*/) {
  return result(EOPNOTSUPP);
}
PACELINE_VERBS_EXPORT int ibv_query_ece(ibv_qp* /*qp*/, ibv_ece* ece) {
  if (ece != nullptr) *ece = {};
  return result(EOPNOTSUPP);
}

// Sharing objects between processes.
PACELINE_VERBS_EXPORT ibv_context* ibv_import_device(int /*cmd_fd*/) { return refuse(EOPNOTSUPP); }
PACELINE_VERBS_EXPORT ibv_pd* ibv_import_pd(ibv_context* /*context*/, std::uint32_t /*handle*/) {
  return refuse(EOPNOTSUPP);
}
PACELINE_VERBS_EXPORT void ibv_unimport_pd(ibv_pd* /*pd*/) {}
PACELINE_VERBS_EXPORT ibv_mr* ibv_import_mr(ibv_pd* /*pd*/, std::uint32_t /*handle*/) {
  return refuse(EOPNOTSUPP);
}
PACELINE_VERBS_EXPORT void ibv_unimport_mr(ibv_mr* /*mr*/) {}
PACELINE_VERBS_EXPORT ibv_dm* ibv_import_dm(ibv_context* /*context*/, std::uint32_t /*handle*/) {
  return refuse(EOPNOTSUPP);
}
PACELINE_VERBS_EXPORT void ibv_unimport_dm(ibv_dm* /*dm*/) {}

// Fork: nothing of what a program registers is withheld from its children (docs/service.md), so
// there is nothing to prepare.
PACELINE_VERBS_EXPORT int ibv_fork_init() { return 0; }
PACELINE_VERBS_EXPORT ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
PACELINE_VERBS_EXPORT int ibv_dontfork_range(void* /*base*/, std::size_t /*size*/) { return 0; }
PACELINE_VERBS_EXPORT int ibv_dofork_range(void* /*base*/, std::size_t /*size*/) { return 0; }

// Destinations are resolved by the service.
PACELINE_VERBS_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* /*context*/,
                                                      ibv_ah_attr* /*attr*/,
                                                      std::uint8_t* /*eth_mac*/,
                                                      std::uint16_t* /*vid*/) {
  return result(EOPNOTSUPP);
}

// This library has no such file.
PACELINE_VERBS_EXPORT int ibv_read_sysfs_file(const char* /*dir*/, const char* /*file*/,
                                              char* /*buf*/, std::size_t /*size*/) {
  return -1;
}
PACELINE_VERBS_EXPORT const char* ibv_get_sysfs_path() { return "/sys"; }
