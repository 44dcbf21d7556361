#include "dataplane/service/cm/abi/ucm_records.h"

#include <algorithm>
#include <cstring>

#include "dataplane/wire/bytes/endian.h"

namespace paceline::service::cm {

namespace {

constexpr std::uint16_t kPartition = 0xFFFF;
constexpr std::uint8_t kExactly = 2;  // a selector of path records

std::uint16_t network(std::uint16_t v) { return wire::to_big_endian(v); }

ib_uverbs_ah_attr address_vector(const PeerPath& path) {
  ib_uverbs_ah_attr out{};
  std::memcpy(out.grh.dgid, path.destination.bytes.data(), sizeof out.grh.dgid);
  out.grh.sgid_index = path.source_gid;
  out.grh.hop_limit = path.hop_limit;
  out.grh.traffic_class = path.traffic_class;
  out.sl = path.service_level;
  out.is_global = 1;
  out.port_num = path.port;
  return out;
}

template <class Param>
void put_private(Param& out, const Event& event) {
  const std::size_t size = std::min(event.private_data.size(), sizeof out.private_data - 1);
  std::copy_n(event.private_data.begin(), size, reinterpret_cast<std::byte*>(out.private_data));
  out.private_data_len = static_cast<std::uint8_t>(size);
}

bool has_route(const CmId& id) {
  return id.state() == CmId::State::route_resolved || id.state() == CmId::State::connecting;
}

// No NIC instance is known before the address is resolved; librdmacm then sees no device.
void put_device(std::uint64_t& guid, std::uint8_t& port, std::uint32_t& index, const CmId& id,
                const NicBook& nics) {
  if (!id.nic()) return;
  guid = nics.nic(*id.nic()).guid;
  port = id.path().port;
  index = static_cast<std::uint32_t>(*id.nic());
}

void put_v6(sockaddr_in6& out, const SocketAddress& address) {
  std::array<std::byte, kStorageBytes> bytes{};
  put_address(bytes.data(), address);
  std::memcpy(&out, bytes.data(), sizeof out);
}

}  // namespace

rdma_ucm_event_resp event_record(const Event& event) {
  rdma_ucm_event_resp out{};
  out.uid = event.cookie;
  out.id = event.id;
  out.event = static_cast<std::uint32_t>(event.kind);
  out.status = static_cast<std::uint32_t>(event.status);
  if (event.datagram) {
    rdma_ucm_ud_param& ud = out.param.ud;
    ud.qp_num = event.qp_number;
    ud.qkey = event.qkey;
    if (event.kind == EventKind::established) ud.ah_attr = address_vector(event.path);
    put_private(ud, event);
    return out;
  }
  rdma_ucm_conn_param& conn = out.param.conn;
  conn.qp_num = event.qp_number;
  conn.srq = event.shared_receives;
  conn.responder_resources = event.responder_resources;
  conn.initiator_depth = event.initiator_depth;
  conn.flow_control = event.flow_control;
  conn.retry_count = event.retry_count;
  conn.rnr_retry_count = event.rnr_retry_count;
  put_private(conn, event);
  return out;
}

rdma_ucm_query_route_resp route_record(const CmId& id, const NicBook& nics) {
  rdma_ucm_query_route_resp out{};
  put_v6(out.src_addr, id.source());
  put_v6(out.dst_addr, id.destination());
  std::uint64_t guid = 0;
  std::uint32_t index = 0;
  put_device(guid, out.port_num, index, id, nics);
  out.node_guid = guid;
  out.ibdev_index = index;
  ib_user_path_rec& path = out.ib_route[0];
  std::memcpy(path.sgid, id.source().ip.bytes.data(), sizeof path.sgid);
  std::memcpy(path.dgid, id.destination().ip.bytes.data(), sizeof path.dgid);
  path.pkey = network(kPartition);
  if (!id.nic() || !has_route(id)) return out;
  out.num_paths = 1;
  path.reversible = 1;
  path.numb_path = 1;
  path.hop_limit = id.path().hop_limit;
  path.traffic_class = id.path().traffic_class;
  path.sl = id.path().service_level;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  path.mtu = nics.mtu_code(*id.nic());
  path.rate = nics.rate_code(*id.nic());
  path.packet_life_time = static_cast<std::uint8_t>(id.ack_timeout() - 1);
  return out;
}

rdma_ucm_query_addr_resp address_record(const CmId& id, const NicBook& nics) {
  rdma_ucm_query_addr_resp out{};
  const auto put = [](auto& to, const SocketAddress& address) {
    return static_cast<std::uint16_t>(put_address(reinterpret_cast<std::byte*>(&to), address));
  };
  out.src_size = put(out.src_addr, id.source());
  out.dst_size = put(out.dst_addr, id.destination());
  std::uint64_t guid = 0;
  std::uint32_t index = 0;
  put_device(guid, out.port_num, index, id, nics);
  out.node_guid = guid;
  out.ibdev_index = index;
  out.pkey = network(kPartition);
  return out;
}

rdma_ucm_query_addr_resp gid_record(const CmId& id, const NicBook& nics) {
  rdma_ucm_query_addr_resp out = address_record(id, nics);
  const auto put = [&](auto& to, const SocketAddress& address) {
    std::memset(&to, 0, sizeof to);
    SocketAddress gid;
    gid.family = kAfIb;
    gid.ip = address.ip;
    gid.service = address.none() ? 0 : service_id(id.space(), address.port);
    return static_cast<std::uint16_t>(put_address(reinterpret_cast<std::byte*>(&to), gid));
  };
  out.src_size = put(out.src_addr, id.source());
  out.dst_size = put(out.dst_addr, id.destination());
  return out;
}

PathRecord path_record(const CmId& id, const NicBook& nics) {
  PathRecord out;
  if (!id.nic() || !has_route(id)) return out;
  out.paths = 1;
  out.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  // IBTA vol. 1, 15.2.5.16: PathRecord.
  auto* const at = reinterpret_cast<std::byte*>(out.path.path_rec);
  const PeerPath path = id.path();
  const auto exactly = [](std::uint8_t v) { return static_cast<std::uint8_t>(kExactly << 6U | v); };
  std::memcpy(at + 8, id.destination().ip.bytes.data(), 16);
  std::memcpy(at + 24, id.source().ip.bytes.data(), 16);
  wire::store_be32(at + 44, path.hop_limit);
  wire::store_u8(at + 48, path.traffic_class);
  wire::store_u8(at + 49, 0x80 | 1);  // reversible, one path
  wire::store_be16(at + 50, kPartition);
  wire::store_be16(at + 52, path.service_level);
  wire::store_u8(at + 54, exactly(nics.mtu_code(*id.nic())));
  wire::store_u8(at + 55, exactly(nics.rate_code(*id.nic())));
  wire::store_u8(at + 56, exactly(static_cast<std::uint8_t>(id.ack_timeout() - 1)));
  return out;
}

ib_uverbs_qp_attr qp_record(std::uint32_t state, const QpAttributes& values) {
  ib_uverbs_qp_attr out{};
  const Agreed& agreed = values.agreed;
  out.qp_attr_mask = values.mask;
  out.qp_state = state;
  out.path_mtu = values.path_mtu;
  out.qkey = values.qkey;
  out.rq_psn = agreed.receive_psn;
  out.sq_psn = agreed.send_psn;
  out.dest_qp_num = agreed.remote_qp;
  out.qp_access_flags = values.access;
  out.ah_attr = address_vector(values.path);
  out.max_rd_atomic = agreed.initiator_depth;
  out.max_dest_rd_atomic = agreed.responder_resources;
  out.port_num = values.path.port;
  out.timeout = agreed.ack_timeout;
  out.retry_cnt = agreed.retry_count;
  out.rnr_retry = agreed.rnr_retry_count;
  return out;
}

}  // namespace paceline::service::cm
