// Operations that programs reach through a context, an object or both, not by name. Each is
// described in the file that defines it.
#pragma once

#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

// poll.cc
int poll_cq(ibv_cq* cq, int count, ibv_wc* out) noexcept;
// completion_channel.cc
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;
// post_send.cc, post_receive.cc
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
int post_send_watched(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

// query_port.cc, query_device.cc
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr,
               std::size_t length) noexcept;
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t length) noexcept;
// completion_queue.cc
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept;
// queue_pair.cc, queue_pair_state.cc
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept;
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr) noexcept;
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) noexcept;
// domain.cc
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) noexcept;
int close_xrcd(ibv_xrcd* xrcd) noexcept;
// shared_receive_queue.cc
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept;
int get_srq_num(ibv_srq* srq, std::uint32_t* number) noexcept;
// device_memory.cc
inline constexpr std::size_t kMostDeviceMemory = std::size_t{256} << 10U;  // bytes of one piece
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) noexcept;
int free_dm(ibv_dm* dm) noexcept;
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) noexcept;
// memory_window.cc
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) noexcept;
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) noexcept;
int dealloc_mw(ibv_mw* mw) noexcept;
// on_demand.cc
void describe_on_demand(ibv_device_attr_ex& out);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
              std::uint32_t count) noexcept;
// protection_domain.cc
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) noexcept;
int dealloc_td(ibv_td* td) noexcept;
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) noexcept;

}  // namespace paceline::verbs
