#include "dataplane/service/adapters/qp_values.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <iterator>

#include "dataplane/transport/memory/region.h"
#include "dataplane/wire/headers/dscp.h"

namespace paceline::service {

namespace {

static_assert(static_cast<int>(transport::QpState::reset) == IBV_QPS_RESET &&
              static_cast<int>(transport::QpState::init) == IBV_QPS_INIT &&
              static_cast<int>(transport::QpState::rtr) == IBV_QPS_RTR &&
              static_cast<int>(transport::QpState::rts) == IBV_QPS_RTS &&
              static_cast<int>(transport::QpState::sqd) == IBV_QPS_SQD &&
              static_cast<int>(transport::QpState::sqe) == IBV_QPS_SQE &&
              static_cast<int>(transport::QpState::error) == IBV_QPS_ERR);

constexpr std::uint32_t kPsnMask = 0xFF'FFFF;

struct MaskPair {
  std::uint32_t verbs;
  std::uint32_t engine;
};
constexpr MaskPair kMasks[] = {
    {IBV_QP_STATE, transport::qp_attribute::state},
    {IBV_QP_CUR_STATE, transport::qp_attribute::current_state},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, transport::qp_attribute::notify_drained},
    {IBV_QP_ACCESS_FLAGS, transport::qp_attribute::access_flags},
    {IBV_QP_PKEY_INDEX, transport::qp_attribute::pkey_index},
    {IBV_QP_PORT, transport::qp_attribute::port},
    {IBV_QP_QKEY, transport::qp_attribute::qkey},
    {IBV_QP_AV, transport::qp_attribute::path},
    {IBV_QP_PATH_MTU, transport::qp_attribute::path_mtu},
    {IBV_QP_TIMEOUT, transport::qp_attribute::timeout},
    {IBV_QP_RETRY_CNT, transport::qp_attribute::retry_count},
    {IBV_QP_RNR_RETRY, transport::qp_attribute::rnr_retry},
    {IBV_QP_RQ_PSN, transport::qp_attribute::rq_psn},
    {IBV_QP_SQ_PSN, transport::qp_attribute::sq_psn},
    {IBV_QP_MAX_QP_RD_ATOMIC, transport::qp_attribute::max_rd_atomic},
    {IBV_QP_MAX_DEST_RD_ATOMIC, transport::qp_attribute::max_dest_rd_atomic},
    {IBV_QP_MIN_RNR_TIMER, transport::qp_attribute::min_rnr_timer},
    {IBV_QP_DEST_QPN, transport::qp_attribute::dest_qp_number},
};

// Attributes that are accepted although the engine does not use them.
constexpr std::uint32_t kOwnMask = IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT;

// Access rights of a queue pair: what peers may do. Programs set local write by habit; it is
// ignored.
constexpr std::uint32_t kAccessMask = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Returns an error in the values, or an empty text.
std::string complaint_about(const attach::QpValues& v, std::uint8_t most_rd_atomic) {
  std::uint32_t taken = kOwnMask;
  for (const MaskPair& pair : kMasks) taken |= pair.verbs;
  if ((v.mask & ~taken) != 0) {
    return fmt::format("attr_mask: bits {:#x} are not offered", v.mask & ~taken);
  }
  const struct {
    std::uint32_t bit;
    const char* name;
    std::uint32_t value;
    bool good;
    const char* allowed;
  } rules[] = {
      {IBV_QP_STATE, "qp_state", v.state, v.state <= IBV_QPS_ERR, "0 to 6"},
      {IBV_QP_CUR_STATE, "cur_qp_state", v.current_state, v.current_state <= IBV_QPS_ERR, "0 to 6"},
      {IBV_QP_ACCESS_FLAGS, "qp_access_flags", v.access, (v.access & ~kAccessMask) == 0,
       "remote write, read, atomic"},
      {IBV_QP_PATH_MTU, "path_mtu", v.path_mtu,
       v.path_mtu >= IBV_MTU_256 && v.path_mtu <= IBV_MTU_4096, "1 (256 bytes) to 5 (4096 bytes)"},
      {IBV_QP_TIMEOUT, "timeout", v.timeout, v.timeout <= 31, "0 to 31"},
      {IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", v.max_rd_atomic, v.max_rd_atomic <= most_rd_atomic,
       "up to what the device says"},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", v.max_dest_rd_atomic,
       v.max_dest_rd_atomic <= most_rd_atomic, "up to what the device says"},
      {IBV_QP_PATH_MIG_STATE, "path_mig_state", v.path_migration,
       v.path_migration == IBV_MIG_MIGRATED, "migrated: there are no alternate paths"},
  };
  for (const auto& rule : rules) {
    if ((v.mask & rule.bit) != 0 && !rule.good) {
      return fmt::format("{} = {}: {}", rule.name, rule.value, rule.allowed);
    }
  }
  return {};
}

}  // namespace

std::optional<QpChange> change_from(const attach::QpValues& v, std::uint8_t most_rd_atomic,
                                    std::string& why) {
  why = complaint_about(v, most_rd_atomic);
  if (!why.empty()) return std::nullopt;
  QpChange change;
  for (const MaskPair& pair : kMasks) {
    if ((v.mask & pair.verbs) != 0) change.mask |= pair.engine;
  }
  change.limit_rate = (v.mask & IBV_QP_RATE_LIMIT) != 0;
  transport::QpAttributes& a = change.attributes;
  a.state = static_cast<transport::QpState>(v.state);
  a.current_state = static_cast<transport::QpState>(v.current_state);
  a.notify_drained = v.drain_notify != 0;
  a.access = static_cast<std::uint8_t>(v.access & transport::access::remote);
  a.pkey_index = v.pkey_index;
  a.port = v.port;
  a.qkey = v.qkey;
  if ((v.mask & IBV_QP_PATH_MTU) != 0) a.path_mtu = static_cast<std::uint16_t>(128U << v.path_mtu);
  a.timeout = transport::ack_timeout(v.timeout);
  a.retry_count = v.retry_count;
  a.rnr_retry = v.rnr_retry;
  a.min_rnr_timer = v.min_rnr_timer;
  a.max_rd_atomic = v.max_rd_atomic;
  a.max_dest_rd_atomic = v.max_dest_rd_atomic;
  // Programs draw 32 random bits and mean the low 24, as drivers do.
  a.rq_psn = Psn{v.rq_psn & kPsnMask};
  a.sq_psn = Psn{v.sq_psn & kPsnMask};
  a.dest_qp_number = v.dest_qp;
  return change;
}

void remember(attach::QpValues& known, const attach::QpValues& asked) {
  if ((asked.mask & IBV_QP_STATE) != 0 && asked.state == IBV_QPS_RESET) {
    const std::uint32_t handle = known.handle;
    known = {};
    known.handle = handle;
    return;
  }
  const auto take = [&](std::uint32_t bit, auto attach::QpValues::*member) {
    if ((asked.mask & bit) != 0) known.*member = asked.*member;
  };
  using attach::QpValues;
  take(IBV_QP_ACCESS_FLAGS, &QpValues::access);
  take(IBV_QP_PKEY_INDEX, &QpValues::pkey_index);
  take(IBV_QP_PORT, &QpValues::port);
  take(IBV_QP_QKEY, &QpValues::qkey);
  take(IBV_QP_AV, &QpValues::path);
  take(IBV_QP_PATH_MTU, &QpValues::path_mtu);
  take(IBV_QP_TIMEOUT, &QpValues::timeout);
  take(IBV_QP_RETRY_CNT, &QpValues::retry_count);
  take(IBV_QP_RNR_RETRY, &QpValues::rnr_retry);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &QpValues::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &QpValues::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &QpValues::min_rnr_timer);
  take(IBV_QP_DEST_QPN, &QpValues::dest_qp);
  take(IBV_QP_RATE_LIMIT, &QpValues::rate_limit_kbps);
}

attach::QpValues values_of(const attach::QpValues& known, const transport::QpAttributes& a) {
  attach::QpValues v = known;
  v.state = v.current_state = static_cast<std::uint32_t>(a.state);
  v.rq_psn = a.rq_psn.value();
  v.sq_psn = a.sq_psn.value();
  return v;
}

std::uint16_t source_port_of(std::uint32_t flow_label, std::uint32_t local_qp,
                             std::uint32_t remote_qp) {
  std::uint32_t label = flow_label & 0xF'FFFF;
  if (label == 0) {
    std::uint64_t mixed = std::uint64_t{local_qp} * remote_qp;
    mixed ^= mixed >> 20U;
    mixed ^= mixed >> 40U;
    label = static_cast<std::uint32_t>(mixed & 0xF'FFFF);
  }
  return wire::source_port_from_entropy(label ^ label >> 14U);
}

std::optional<Rate> static_rate_of(std::uint8_t number) {
  // By number, in Mb/s: the exact rates of links, which the enum's names round.
  constexpr std::uint32_t kMbps[] = {0,       0,       2500,    10'000,   30'000,  5000,   20'000,
                                     40'000,  60'000,  80'000,  120'000,  14'062,  56'250, 112'500,
                                     168'750, 25'781,  103'125, 206'250,  309'375, 28'125, 53'125,
                                     425'000, 637'500, 850'000, 1'275'000};
  static_assert(IBV_RATE_120_GBPS == 10 && IBV_RATE_25_GBPS == 15 && IBV_RATE_1200_GBPS == 24);
  if (number >= std::size(kMbps) || number == 1) return std::nullopt;
  return rate_from_mbps(kMbps[number]);
}

std::optional<std::uint8_t> traffic_class_of(const attach::AddressVector& path) {
  if (path.global != 0 && path.traffic_class != 0) {
    return wire::kDefaultDscpMap.traffic_class(static_cast<std::uint8_t>(path.traffic_class >> 2U));
  }
  if (path.service_level != 0) return path.service_level;
  return std::nullopt;
}

}  // namespace paceline::service
