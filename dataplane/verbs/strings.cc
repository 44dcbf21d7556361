// Translates numbers to words and back: functions that a program with only our library finds
// nowhere else.
#include <array>
#include <cstddef>

#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

namespace {

template <std::size_t kCount>
const char* word(const std::array<const char*, kCount>& words, int index, const char* unknown) {
  return index < 0 || static_cast<std::size_t>(index) >= kCount
             ? unknown
             : words[static_cast<std::size_t>(index)];
}

constexpr std::array<const char*, 7> kNodeTypes{
    "unspecified",       "InfiniBand channel adapter",
    "InfiniBand switch", "InfiniBand router",
    "iWARP NIC",         "usNIC",
    "usNIC UDP",
};
constexpr std::array<const char*, 6> kPortStates{
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};
constexpr std::array<const char*, 20> kEventTypes{
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "work queue fatal",
};
constexpr std::array<const char*, 24> kStatuses{
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "tag matching error",
    "tag matching rendezvous incomplete",
};

// Encodings of static rates (IBTA table 35 and its supplements), in Mb/s and in units of 2.5 Gb/s
// (-1: no whole multiple is defined).
struct Rate {
  ibv_rate code;
  int mbps;
  int multiple;
};
constexpr std::array<Rate, 23> kRates{{
    {IBV_RATE_2_5_GBPS, 2500, 1},       {IBV_RATE_5_GBPS, 5000, 2},
    {IBV_RATE_10_GBPS, 10000, 4},       {IBV_RATE_14_GBPS, 14062, 6},
    {IBV_RATE_20_GBPS, 20000, 8},       {IBV_RATE_25_GBPS, 25781, 10},
    {IBV_RATE_28_GBPS, 28125, 11},      {IBV_RATE_30_GBPS, 30000, 12},
    {IBV_RATE_40_GBPS, 40000, 16},      {IBV_RATE_50_GBPS, 53125, 20},
    {IBV_RATE_56_GBPS, 56250, 22},      {IBV_RATE_60_GBPS, 60000, 24},
    {IBV_RATE_80_GBPS, 80000, 32},      {IBV_RATE_100_GBPS, 103125, 40},
    {IBV_RATE_112_GBPS, 112500, 45},    {IBV_RATE_120_GBPS, 120000, 48},
    {IBV_RATE_168_GBPS, 168750, 67},    {IBV_RATE_200_GBPS, 206250, 80},
    {IBV_RATE_300_GBPS, 309375, 120},   {IBV_RATE_400_GBPS, 425000, 160},
    {IBV_RATE_600_GBPS, 637500, 240},   {IBV_RATE_800_GBPS, 850000, 320},
    {IBV_RATE_1200_GBPS, 1275000, 480},
}};

}  // namespace

}  // namespace paceline::verbs

using namespace paceline::verbs;

PACELINE_VERBS_EXPORT const char* ibv_node_type_str(ibv_node_type node_type) {
  return word(kNodeTypes, static_cast<int>(node_type), "unknown");
}

PACELINE_VERBS_EXPORT const char* ibv_port_state_str(ibv_port_state port_state) {
  return word(kPortStates, static_cast<int>(port_state), "unknown");
}

PACELINE_VERBS_EXPORT const char* ibv_event_type_str(ibv_event_type event) {
  return word(kEventTypes, static_cast<int>(event), "unknown");
}

PACELINE_VERBS_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return word(kStatuses, static_cast<int>(status), "unknown");
}

PACELINE_VERBS_EXPORT int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.code == rate) return r.multiple;
  }
  return -1;
}

PACELINE_VERBS_EXPORT ibv_rate mult_to_ibv_rate(int mult) {
  for (const Rate& r : kRates) {
    if (r.multiple == mult) return r.code;
  }
  return IBV_RATE_MAX;
}

PACELINE_VERBS_EXPORT int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.code == rate) return r.mbps;
  }
  return -1;
}

PACELINE_VERBS_EXPORT ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& r : kRates) {
    if (r.mbps == mbps) return r.code;
  }
  return IBV_RATE_MAX;
}
