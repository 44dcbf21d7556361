// Address handles, and how one is made from what a datagram brought.
#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/queue_pair/address_vector.h"

namespace paceline::verbs {

namespace {

ibv_ah* make_handle(ibv_pd* pd, const ibv_ah_attr& attr) {
  auto ah = std::make_unique<ibv_ah>();
  attach::CreateAhRequest request;
  request.pd = pd->handle;
  request.path = address_vector(attr);
  attach::HandleBody reply;
  const int error =
      Context::of(pd->context).session.ask(attach::Operation::create_ah, request, reply);
  if (error != 0) return refuse(error);
  *ah = {pd->context, pd, reply.handle};
  return ah.release();
}

// Where a datagram came from and went to. Over IPv4 the last 20 of the 40 bytes are the IPv4 header
// and the first 20 undefined (RoCEv2 annex A17.4.5.2).
struct Ends {
  std::array<std::byte, 16> from{};
  std::array<std::byte, 16> to{};
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
};

std::array<std::byte, 16> mapped(const std::uint8_t* ipv4) {
  std::array<std::byte, 16> gid{};
  gid[10] = gid[11] = std::byte{0xff};
  std::memcpy(&gid[12], ipv4, 4);
  return gid;
}

// RFC 791: the ones' complement sum over a header with its checksum is all ones.
bool is_ipv4(const std::uint8_t* header) {
  if (header[0] != 0x45) return false;
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16U);
  return ((sum & 0xffff) + (sum >> 16U)) == 0xffff;
}

Ends ends_of(const ibv_grh& grh) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&grh);
  Ends ends;
  if (const std::uint8_t* const ip = bytes + 20; is_ipv4(ip)) {
    ends.traffic_class = ip[1];
    ends.hop_limit = ip[8];
    ends.from = mapped(ip + 12);
    ends.to = mapped(ip + 16);
    return ends;
  }
  std::memcpy(ends.from.data(), grh.sgid.raw, 16);
  std::memcpy(ends.to.data(), grh.dgid.raw, 16);
  const std::uint32_t word = ntohl(grh.version_tclass_flow);
  ends.traffic_class = static_cast<std::uint8_t>(word >> 20U);
  ends.flow_label = word & 0xfffff;
  ends.hop_limit = grh.hop_limit;
  return ends;
}

int answer_to(const attach::NicInfo& nic, const ibv_wc& wc, const ibv_grh* grh, ibv_ah_attr& out,
              std::uint8_t port) {
  if (!attach::has_port(nic, port)) return EINVAL;
  out = {};
  out.dlid = wc.slid;
  out.port_num = port;
  if ((wc.wc_flags & IBV_WC_GRH) == 0) {
    out.sl = wc.sl;
    return 0;
  }
  // With a header, `sl` tells its kind (queues.h), not the class that the answer should have.
  if (grh == nullptr) return EINVAL;
  const Ends ends = ends_of(*grh);
  std::size_t index = 0;
  while (index < nic.gids.size() && (nic.gid_kinds[index] == attach::GidKind::none ||
                                     attach::gid_of(nic, port, index) != ends.to)) {
    ++index;
  }
  if (index == nic.gids.size()) return EINVAL;
  out.is_global = 1;
  std::memcpy(out.grh.dgid.raw, ends.from.data(), 16);
  out.grh.sgid_index = static_cast<std::uint8_t>(index);
  // The remaining hop limit of the datagram tells nothing about the way back.
  out.grh.hop_limit = 0xff;
  out.grh.traffic_class = ends.traffic_class;
  out.grh.flow_label = ends.flow_label;
  return 0;
}

}  // namespace

}  // namespace paceline::verbs

PACELINE_VERBS_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return paceline::verbs::guarded(static_cast<ibv_ah*>(nullptr),
                                  [&] { return paceline::verbs::make_handle(pd, *attr); });
}

PACELINE_VERBS_EXPORT int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port_num,
                                              ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* ah_attr) {
  using namespace paceline::verbs;
  const int error = answer_to(Context::of(context).nic, *wc, grh, *ah_attr, port_num);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

PACELINE_VERBS_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                                    std::uint8_t port_num) {
  ibv_ah_attr attr;
  if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0) return nullptr;
  return ibv_create_ah(pd, &attr);
}

PACELINE_VERBS_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  using namespace paceline::verbs;
  const int error = guarded(ENOMEM, [&] {
    return Context::of(ah->context)
        .session.drop(paceline::attach::Operation::destroy_ah, ah->handle);
  });
  if (error != 0 && error != EIO) return result(error);
  delete ah;
  return 0;
}
