// ibv_query_device and ibv_query_device_ex.
#include <algorithm>
#include <cstring>
#include <limits>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

// Not a vendor's identifier but a locally administered one (IEEE 802c), so that no program takes
// the device for a model with special features.
constexpr std::uint32_t kVendor = 0x02504c;
constexpr std::uint32_t kPart = 1;

int as_int(std::uint64_t value) {
  return static_cast<int>(std::min<std::uint64_t>(value, std::numeric_limits<int>::max()));
}

void describe(const Context& context, ibv_device_attr& out) {
  const attach::NicLimits& limits = context.nic.limits;
  out = {};
  const auto& version = context.session.service().version;
  std::copy(version.begin(), version.end() - 1, out.fw_ver);
  out.node_guid = context.nic.guid;
  out.sys_image_guid = context.nic.guid;
  out.max_mr_size = limits.region_bytes;
  out.page_size_cap = ~std::uint64_t{4095};
  out.vendor_id = kVendor;
  out.vendor_part_id = kPart;
  out.hw_ver = attach::kMajor;
  out.max_qp = as_int(limits.queue_pairs);
  out.max_qp_wr = as_int(limits.requests);
  out.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                         IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                         IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW |
                         IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC;
  out.max_sge = as_int(limits.segments);
  out.max_sge_rd = as_int(limits.segments);
  out.max_cq = as_int(limits.completion_queues);
  out.max_cqe = as_int(limits.entries);
  out.max_mr = as_int(limits.regions);
  out.max_mw = as_int(limits.regions);  // of both together
  out.max_pd = as_int(limits.protection_domains);
  out.max_qp_rd_atom = as_int(limits.rd_atomic);
  out.max_res_rd_atom = as_int(std::uint64_t{limits.rd_atomic} * limits.queue_pairs);
  out.max_qp_init_rd_atom = as_int(limits.rd_atomic);
  // All accesses to a region go through one engine, those of its owner excepted.
  out.atomic_cap = IBV_ATOMIC_HCA;
  out.max_ah = as_int(limits.address_handles);
  out.max_srq = as_int(limits.shared_receive_queues);
  out.max_srq_wr = as_int(limits.requests);
  out.max_srq_sge = as_int(limits.segments);
  out.max_pkeys = 1;
  out.local_ca_ack_delay = 10;  // 4.096 us * 2^10: about the 4 ms for which a worker may be stopped
  out.phys_port_cnt = static_cast<std::uint8_t>(attach::ports_of(context.nic));
}

void describe(const Context& context, ibv_device_attr_ex& out) {
  out = {};
  describe(context, out.orig_attr);
  out.completion_timestamp_mask = std::numeric_limits<std::uint64_t>::max();
  out.hca_core_clock = context.nic.clock_khz;
  out.device_cap_flags_ex = out.orig_attr.device_cap_flags;
  const std::uint64_t kbps = context.nic.rate_mbps * 1000;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  out.packet_pacing_caps.qp_rate_limit_min = 1;
  out.packet_pacing_caps.qp_rate_limit_max =
      static_cast<std::uint32_t>(kbps == 0 ? kMost : std::min(kbps, kMost));
  out.packet_pacing_caps.supported_qpts = 1U << IBV_QPT_RC | 1U << IBV_QPT_UC;
  out.phys_port_cnt_ex = attach::ports_of(context.nic);
  out.max_dm_size = kMostDeviceMemory;
  describe_on_demand(out);
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t length) noexcept {
  if (input != nullptr && input->comp_mask != 0) return result(EINVAL);
  if (length < sizeof(attr->orig_attr)) return result(EINVAL);
  ibv_device_attr_ex all;
  describe(Context::of(context), all);
  // A program compiled with another header gets what both know, and zeroes beyond.
  std::memset(attr, 0, length);
  std::memcpy(attr, &all, std::min(length, sizeof(all)));
  return 0;
}

}  // namespace paceline::verbs

PACELINE_VERBS_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* device_attr) {
  paceline::verbs::describe(paceline::verbs::Context::of(context), *device_attr);
  return 0;
}
