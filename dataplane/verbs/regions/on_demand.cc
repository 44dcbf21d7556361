// On-demand paging. Hardware needs support for memory that is not pinned. Here nothing is pinned,
// so the pages of every region may come and go. The implicit region, of all addresses, is not
// offered.
#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

void describe_on_demand(ibv_device_attr_ex& out) {
  constexpr std::uint32_t kMessages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
  out.odp_caps.general_caps = IBV_ODP_SUPPORT;
  out.odp_caps.per_transport_caps.rc_odp_caps = kMessages | IBV_ODP_SUPPORT_WRITE |
                                                IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                                                IBV_ODP_SUPPORT_SRQ_RECV;
  out.xrc_odp_caps = out.odp_caps.per_transport_caps.rc_odp_caps;
  out.odp_caps.per_transport_caps.uc_odp_caps = kMessages | IBV_ODP_SUPPORT_WRITE;
  out.odp_caps.per_transport_caps.ud_odp_caps = kMessages | IBV_ODP_SUPPORT_SRQ_RECV;
}

// Advice about pages that are used soon. It is ignored: there is no page table here to fill.
int advise_mr(ibv_pd* /*pd*/, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
              std::uint32_t count) noexcept {
  switch (advice) {
    case IBV_ADVISE_MR_ADVICE_PREFETCH:
    case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
    case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
      break;
    default:
      return result(EOPNOTSUPP);
  }
  if ((flags & ~static_cast<std::uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0) return result(EINVAL);
  if (pieces == nullptr || count == 0) return result(EINVAL);
  return 0;
}

}  // namespace paceline::verbs
