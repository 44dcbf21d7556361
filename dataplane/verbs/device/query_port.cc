// Queries of a port: its attributes, its GIDs, its partition key.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

constexpr std::uint16_t kDefaultPartition = 0xffff;
constexpr std::uint8_t kLinkUp = 5;               // PortInfo:PortPhysicalState
constexpr std::uint8_t kPhysDisabled = 3;         // likewise
constexpr std::uint32_t kMaxMessage = 1U << 31U;  // IBTA C9-8: 2^31 bytes

// Codes of PortInfo:LinkWidthActive and LinkSpeedActive, with what a link of both carries.
struct LinkSpeed {
  std::uint64_t mbps;
  std::uint8_t width;
  std::uint8_t speed;
};
constexpr std::array<LinkSpeed, 10> kSpeeds{{
    {2'500, 1, 1},      // 1x SDR
    {10'000, 1, 8},     // 1x FDR10
    {25'000, 1, 32},    // 1x EDR
    {40'000, 2, 8},     // 4x FDR10
    {50'000, 1, 64},    // 1x HDR
    {56'000, 2, 16},    // 4x FDR
    {100'000, 2, 32},   // 4x EDR
    {200'000, 2, 64},   // 4x HDR
    {400'000, 2, 128},  // 4x NDR
    {800'000, 4, 128},  // 8x NDR
}};

// The nearest that is not below the rate; unlimited is the fastest.
const LinkSpeed& speed_of(std::uint64_t mbps) {
  if (mbps != 0) {
    for (const LinkSpeed& s : kSpeeds) {
      if (s.mbps >= mbps) return s;
    }
  }
  return kSpeeds.back();
}

ibv_mtu mtu_code(std::uint16_t bytes) {
  if (bytes >= 4096) return IBV_MTU_4096;
  if (bytes >= 2048) return IBV_MTU_2048;
  if (bytes >= 1024) return IBV_MTU_1024;
  return bytes >= 512 ? IBV_MTU_512 : IBV_MTU_256;
}

void describe_port(const attach::NicInfo& nic, std::uint8_t port, ibv_port_attr& out) {
  const bool up = attach::is_up(nic, port);
  out = {};
  out.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out.max_mtu = IBV_MTU_4096;
  out.active_mtu = mtu_code(nic.mtu);
  out.gid_tbl_len = attach::kGids;
  out.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  out.max_msg_sz = kMaxMessage;
  out.pkey_tbl_len = 1;
  out.lid = attach::local_id_of(nic, port);
  out.max_vl_num = 1;
  const LinkSpeed& speed = speed_of(nic.rate_mbps);
  out.active_width = speed.width;
  out.active_speed = speed.speed;
  out.phys_state = up ? kLinkUp : kPhysDisabled;
  out.link_layer = IBV_LINK_LAYER_ETHERNET;
}

void fill_entry(const attach::NicInfo& nic, std::uint32_t port, std::uint32_t index,
                ibv_gid_entry& out) {
  out = {};
  const auto gid = attach::gid_of(nic, port, index);
  std::memcpy(out.gid.raw, gid.data(), sizeof(out.gid.raw));
  out.gid_index = index;
  out.port_num = port;
  out.gid_type = IBV_GID_TYPE_ROCE_V2;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr,
               std::size_t length) noexcept {
  Context& c = Context::of(context);
  if (!attach::has_port(c.nic, port)) return result(EINVAL);
  return guarded(ENOMEM, [&] {
    attach::Message reply;
    // The port may have gone down since the device was opened.
    const int error =
        c.session.ask(attach::Operation::query_port, attach::HandleBody{port, 0}, reply);
    if (error != 0) return result(error);
    ibv_port_attr all;
    describe_port(reply.body.empty() ? c.nic : reply.as<attach::NicInfo>(), port, all);
    std::memset(attr, 0, length);
    std::memcpy(attr, &all, std::min(length, sizeof(all)));
    return 0;
  });
}

}  // namespace paceline::verbs

using paceline::verbs::Context;

// From rdma-core 61 on: the rate in units of 100 Mb/s. The asm label names the symbol, because the
// header here may or may not declare the function.
PACELINE_VERBS_EXPORT int newer_query_port_speed(
    ibv_context* context, std::uint32_t port, std::uint64_t* speed) __asm__("ibv_query_port_speed");
int newer_query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed) {
  const auto& nic = Context::of(context).nic;
  if (!paceline::attach::has_port(nic, port)) return paceline::verbs::result(EINVAL);
  const std::uint64_t mbps = nic.rate_mbps;
  *speed = (mbps == 0 ? paceline::verbs::kSpeeds.back().mbps : mbps + 99) / 100;
  return 0;
}

// Called by programs that were built with an older ibv_context, with the attributes of that time.
PACELINE_VERBS_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port_num,
                                         _compat_ibv_port_attr* port_attr) {
  return paceline::verbs::query_port(context, port_num, reinterpret_cast<ibv_port_attr*>(port_attr),
                                     paceline::verbs::kOldPortAttributes);
}

PACELINE_VERBS_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t port_num, int index,
                                        ibv_gid* gid) {
  const auto& nic = Context::of(context).nic;
  if (!paceline::attach::has_port(nic, port_num) || index < 0 ||
      static_cast<std::size_t>(index) >= nic.gids.size()) {
    errno = EINVAL;
    return -1;
  }
  const auto found = paceline::attach::gid_of(nic, port_num, static_cast<std::size_t>(index));
  std::memcpy(gid->raw, found.data(), sizeof(gid->raw));
  return 0;
}

PACELINE_VERBS_EXPORT int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port_num,
                                            std::uint32_t gid_index, ibv_gid_entry* entry,
                                            std::uint32_t flags, std::size_t entry_size) {
  using paceline::verbs::result;
  const auto& nic = Context::of(context).nic;
  if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) return result(EINVAL);
  if (!paceline::attach::has_port(nic, port_num) || gid_index >= nic.gids.size()) {
    return result(EINVAL);
  }
  if (nic.gid_kinds[gid_index] == paceline::attach::GidKind::none) return result(ENODATA);
  std::memset(entry, 0, entry_size);
  paceline::verbs::fill_entry(nic, port_num, gid_index, *entry);
  return 0;
}

// The number of entries that hold an address, or a negative errno.
PACELINE_VERBS_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                                   std::size_t max_entries, std::uint32_t flags,
                                                   std::size_t entry_size) {
  const auto& nic = Context::of(context).nic;
  if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) return -EOPNOTSUPP;
  std::size_t found = 0;
  paceline::attach::each_gid(nic, [&](std::uint32_t port, std::uint32_t index, const auto&) {
    if (found++ >= max_entries) return;
    auto* const at = reinterpret_cast<std::byte*>(entries) + (found - 1) * entry_size;
    std::memset(at, 0, entry_size);
    paceline::verbs::fill_entry(nic, port, index, *reinterpret_cast<ibv_gid_entry*>(at));
  });
  return found > max_entries ? -EINVAL : static_cast<ssize_t>(found);
}

// Not in the public header, but ibv_devinfo asks for it. Its numbers differ from ibv_gid_type: 0 is
// InfiniBand and RoCE v1, 1 is RoCE v2.
PACELINE_VERBS_EXPORT int ibv_query_gid_type(ibv_context* context, std::uint8_t port_num,
                                             unsigned int index, unsigned int* type) {
  const auto& nic = Context::of(context).nic;
  if (!paceline::attach::has_port(nic, port_num) || index >= nic.gids.size()) {
    errno = EINVAL;
    return -1;
  }
  *type = 1;
  return 0;
}

PACELINE_VERBS_EXPORT int ibv_query_pkey(ibv_context* context, std::uint8_t port_num, int index,
                                         __be16* pkey) {
  if (!paceline::attach::has_port(Context::of(context).nic, port_num) || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htons(paceline::verbs::kDefaultPartition);
  return 0;
}

PACELINE_VERBS_EXPORT int ibv_get_pkey_index(ibv_context* context, std::uint8_t port_num,
                                             __be16 pkey) {
  if (paceline::attach::has_port(Context::of(context).nic, port_num) &&
      pkey == htons(paceline::verbs::kDefaultPartition)) {
    return 0;
  }
  errno = EINVAL;
  return -1;
}
