// The interface that programs were compiled against: rdma-core's public header, without the macros
// that stand in front of some of its functions, and with what we rely on of its layout asserted.
//
// verbs_context grows at its front, and a program calls only operations that lie within `sz`. So
// both newer and older programs work.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// On every definition that programs bind to by name; all else is hidden.
#define PACELINE_VERBS_EXPORT extern "C" __attribute__((visibility("default")))

namespace paceline::verbs {

// Programs jump through these, whatever version of the header they were compiled with.
static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context, abi_compat) == 320);
// Offsets are counted from the end, because newer headers keep these.
static_assert(sizeof(verbs_context) - offsetof(verbs_context, sz) == 336);
static_assert(sizeof(verbs_context) - offsetof(verbs_context, context) == 328);
static_assert(sizeof(verbs_context) - offsetof(verbs_context, query_port) == 648);
static_assert(sizeof(verbs_context) - offsetof(verbs_context, create_qp_ex) == 384);
static_assert(sizeof(ibv_cq_ex) == 288);
// Newer headers add members at the end, for operations that a queue pair must first be asked for.
static_assert(offsetof(ibv_qp_ex, wr_atomic_write) == 344);
static_assert(sizeof(ibv_qp) == 160 && sizeof(ibv_cq) == 128);
static_assert(offsetof(ibv_qp_init_attr_ex, comp_mask) >= sizeof(ibv_qp_init_attr) - 4);

// The attributes that ibv_query_port() fills in when it is called by its symbol: the older struct,
// without the second word of capabilities.
inline constexpr std::size_t kOldPortAttributes = offsetof(ibv_port_attr, port_cap_flags2);

}  // namespace paceline::verbs
