// The table of operations through which inline functions of verbs.h jump. For missing ones, those
// functions return EOPNOTSUPP.
#include "dataplane/verbs/device/operations.h"

#include "dataplane/verbs/device/context.h"

namespace paceline::verbs {

void set_operations(verbs_context& verbs) {
  ibv_context_ops& ops = verbs.context.ops;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;

  verbs.query_port = query_port;
  verbs.query_device_ex = query_device_ex;
  verbs.create_cq_ex = create_cq_ex;
  verbs.create_qp_ex = create_qp_ex;
  verbs.open_qp = open_qp;
  verbs.open_xrcd = open_xrcd;
  verbs.close_xrcd = close_xrcd;
  verbs.create_srq_ex = create_srq_ex;
  verbs.get_srq_num = get_srq_num;
  verbs.modify_qp_rate_limit = modify_qp_rate_limit;
  verbs.alloc_td = alloc_td;
  verbs.dealloc_td = dealloc_td;
  verbs.alloc_parent_domain = alloc_parent_domain;
  verbs.alloc_dm = alloc_dm;
  verbs.free_dm = free_dm;
  verbs.reg_dm_mr = reg_dm_mr;
  verbs.advise_mr = advise_mr;
  verbs.sz = sizeof(verbs_context);
}

}  // namespace paceline::verbs
