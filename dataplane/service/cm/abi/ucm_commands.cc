#include "dataplane/service/cm/abi/ucm_commands.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dataplane/service/cm/abi/ucm_records.h"

namespace paceline::service::cm {

namespace {

// Reads the command as a T. False, which means EINVAL, if it has fewer bytes than T (or than
// `least`).
template <class T>
bool read(const UcmRequest& request, T& out, UcmResult& result, std::size_t least = sizeof(T)) {
  out = {};
  if (request.body.size() < least) {
    result.error = EINVAL;
    return false;
  }
  std::memcpy(&out, request.body.data(), std::min(sizeof(T), request.body.size()));
  return true;
}

bool has_room(const UcmRequest& request, std::size_t bytes, UcmResult& result) {
  if (request.room < bytes) result.error = ENOSPC;
  return request.room >= bytes;
}

template <class T>
void respond(const T& record, UcmResult& result) {
  const auto* const at = reinterpret_cast<const std::byte*>(&record);
  result.response.assign(at, at + sizeof(T));
}

// Like the kernel, accepts an address only if its size is exactly that of its family.
std::optional<SocketAddress> sized_address(const __kernel_sockaddr_storage& storage,
                                           std::size_t size) {
  const auto bytes = std::as_bytes(std::span(&storage, 1));
  const auto address = read_address(bytes);
  if (!address || address_bytes(address->family) != size) return std::nullopt;
  return address;
}

std::optional<SocketAddress> v6_address(const sockaddr_in6& address) {
  return read_address(std::as_bytes(std::span(&address, 1)));
}

Offer offer_of(const rdma_ucm_conn_param& param) {
  Offer out;
  out.qp_number = param.qp_num;
  out.shared_receives = param.srq;
  out.responder_resources = param.responder_resources;
  out.initiator_depth = param.initiator_depth;
  out.flow_control = param.flow_control;
  out.retry_count = std::min<std::uint8_t>(7, param.retry_count);
  out.rnr_retry_count = std::min<std::uint8_t>(7, param.rnr_retry_count);
  out.private_data = std::as_bytes(std::span(param.private_data)).first(param.private_data_len);
  return out;
}

// Lengths of the records before later kernels appended the fields named here.
constexpr std::size_t kConnectBytes = offsetof(rdma_ucm_connect, ece);
constexpr std::size_t kAcceptBytes = offsetof(rdma_ucm_accept, ece);
constexpr std::size_t kEventBytes = offsetof(rdma_ucm_event_resp, reserved);
constexpr std::size_t kRouteBytes = offsetof(rdma_ucm_query_route_resp, ibdev_index);
constexpr std::size_t kAddressBytes = offsetof(rdma_ucm_query_addr_resp, ibdev_index);

template <class T>
std::optional<T> option_value(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

UcmCommands::Command UcmCommands::command(std::uint32_t number) {
  static constexpr std::array<Command, RDMA_USER_CM_CMD_JOIN_MCAST + 1> kCommands = [] {
    std::array<Command, RDMA_USER_CM_CMD_JOIN_MCAST + 1> all{};
    all[RDMA_USER_CM_CMD_CREATE_ID] = &UcmCommands::create_id;
    all[RDMA_USER_CM_CMD_DESTROY_ID] = &UcmCommands::destroy_id;
    all[RDMA_USER_CM_CMD_BIND_IP] = &UcmCommands::bind_ip;
    all[RDMA_USER_CM_CMD_RESOLVE_IP] = &UcmCommands::resolve_ip;
    all[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = &UcmCommands::resolve_route;
    all[RDMA_USER_CM_CMD_QUERY_ROUTE] = &UcmCommands::query_route;
    all[RDMA_USER_CM_CMD_CONNECT] = &UcmCommands::connect;
    all[RDMA_USER_CM_CMD_LISTEN] = &UcmCommands::listen;
    all[RDMA_USER_CM_CMD_ACCEPT] = &UcmCommands::accept;
    all[RDMA_USER_CM_CMD_REJECT] = &UcmCommands::reject;
    all[RDMA_USER_CM_CMD_DISCONNECT] = &UcmCommands::disconnect;
    all[RDMA_USER_CM_CMD_INIT_QP_ATTR] = &UcmCommands::init_qp_attr;
    all[RDMA_USER_CM_CMD_GET_EVENT] = &UcmCommands::get_event;
    all[RDMA_USER_CM_CMD_SET_OPTION] = &UcmCommands::set_option;  // the kernel has no GET_OPTION
    all[RDMA_USER_CM_CMD_NOTIFY] = &UcmCommands::notify;
    all[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = &UcmCommands::multicast;
    all[RDMA_USER_CM_CMD_LEAVE_MCAST] = &UcmCommands::multicast;
    all[RDMA_USER_CM_CMD_MIGRATE_ID] = &UcmCommands::migrate_id;
    all[RDMA_USER_CM_CMD_QUERY] = &UcmCommands::query;
    all[RDMA_USER_CM_CMD_BIND] = &UcmCommands::bind;
    all[RDMA_USER_CM_CMD_RESOLVE_ADDR] = &UcmCommands::resolve_address;
    all[RDMA_USER_CM_CMD_JOIN_MCAST] = &UcmCommands::multicast;
    return all;
  }();
  return number < kCommands.size() ? kCommands[number] : nullptr;
}

UcmResult UcmCommands::run(Nanos now, const UcmRequest& request) {
  UcmResult out;
  if (const Command command = UcmCommands::command(request.command)) {
    (this->*command)(now, request, out);
  } else {
    out.error = request.command > RDMA_USER_CM_CMD_JOIN_MCAST ? EINVAL : ENOSYS;
  }
  if (out.error != 0) out.response.clear();
  if (out.response.size() > request.room) out.response.resize(request.room);
  return out;
}

CmId* UcmCommands::find(const UcmRequest& request, std::uint32_t id, UcmResult& out, bool device) {
  CmId* found = nullptr;
  out.error = manager_.find(request.channel, id, found);
  if (found != nullptr && device && !found->nic()) {
    out.error = EINVAL;
    return nullptr;
  }
  return found;
}

void UcmCommands::create_id(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_create_id cmd;
  if (!has_room(request, sizeof(rdma_ucm_create_id_resp), out) || !read(request, cmd, out)) return;
  auto type = IdType::rc;
  switch (cmd.ps) {
    case RDMA_PS_TCP:
      break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      type = IdType::ud;
      break;
    case RDMA_PS_IB:
      type = static_cast<IdType>(cmd.qp_type);
      if (type == IdType::rc || type == IdType::uc || type == IdType::ud) break;
      out.error = EOPNOTSUPP;  // XRC
      return;
    default:
      out.error = EINVAL;
      return;
  }
  rdma_ucm_create_id_resp made{};
  out.error =
      manager_.create(request.channel, cmd.uid, static_cast<PortSpace>(cmd.ps), type, made.id);
  respond(made, out);
}

void UcmCommands::destroy_id(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_destroy_id cmd;
  if (!has_room(request, sizeof(rdma_ucm_destroy_id_resp), out) || !read(request, cmd, out)) return;
  rdma_ucm_destroy_id_resp seen{};
  out.error = manager_.destroy(now, request.channel, cmd.id, seen.events_reported);
  respond(seen, out);
}

void UcmCommands::bind_ip(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_bind_ip cmd;
  if (!read(request, cmd, out)) return;
  const auto address = v6_address(cmd.addr);
  if (!address) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out)) {
    out.error = manager_.bind(*id, *address);
  }
}

void UcmCommands::bind(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_bind cmd;
  if (!read(request, cmd, out)) return;
  const auto address = sized_address(cmd.addr, cmd.addr_size);
  if (!address || cmd.reserved != 0) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out)) {
    out.error = manager_.bind(*id, *address);
  }
}

void UcmCommands::resolve_ip(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_resolve_ip cmd;
  if (!read(request, cmd, out)) return;
  const auto source = v6_address(cmd.src_addr);
  const auto destination = v6_address(cmd.dst_addr);
  if (!destination || (!source && cmd.src_addr.sin6_family != 0)) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out)) {
    out.error = manager_.resolve_address(*id, source.value_or(SocketAddress{}), *destination);
  }
}

void UcmCommands::resolve_address(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_resolve_addr cmd;
  if (!read(request, cmd, out)) return;
  const auto source = sized_address(cmd.src_addr, cmd.src_size);
  const auto destination = sized_address(cmd.dst_addr, cmd.dst_size);
  if (!destination || (!source && cmd.src_size != 0) || cmd.reserved != 0) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out)) {
    out.error =
        manager_.resolve_address(*id, cmd.src_size == 0 ? SocketAddress{} : *source, *destination);
  }
}

void UcmCommands::resolve_route(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_resolve_route cmd;
  if (!read(request, cmd, out)) return;
  if (CmId* const id = find(request, cmd.id, out, true)) out.error = manager_.resolve_route(*id);
}

void UcmCommands::query_route(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_query cmd;
  if (!has_room(request, kRouteBytes, out) || !read(request, cmd, out, 12)) return;
  if (CmId* const id = find(request, cmd.id, out)) respond(route_record(*id, manager_.nics()), out);
}

void UcmCommands::query(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_query cmd;
  if (!read(request, cmd, out)) return;
  CmId* const id = find(request, cmd.id, out);
  if (id == nullptr) return;
  const NicBook& nics = manager_.nics();
  switch (cmd.option) {
    case RDMA_USER_CM_QUERY_ADDR:
      if (has_room(request, kAddressBytes, out)) respond(address_record(*id, nics), out);
      return;
    case RDMA_USER_CM_QUERY_GID:
      if (has_room(request, kAddressBytes, out)) respond(gid_record(*id, nics), out);
      return;
    case RDMA_USER_CM_QUERY_PATH: {
      if (!has_room(request, sizeof(rdma_ucm_query_path_resp), out)) return;
      PathRecord record = path_record(*id, nics);
      if (request.room < sizeof record) record.paths = 0;
      respond(record, out);
      return;
    }
    default:
      out.error = ENOSYS;
  }
}

void UcmCommands::connect(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_connect cmd;
  if (!read(request, cmd, out, kConnectBytes)) return;
  if (cmd.conn_param.valid == 0) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out, true)) {
    out.error = manager_.connect(now, *id, offer_of(cmd.conn_param));
  }
}

void UcmCommands::listen(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_listen cmd;
  if (!read(request, cmd, out)) return;
  const auto backlog = static_cast<std::int32_t>(cmd.backlog) < 0 ? 0 : cmd.backlog;
  if (CmId* const id = find(request, cmd.id, out)) out.error = manager_.listen(*id, backlog);
}

void UcmCommands::accept(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_accept cmd;
  if (!read(request, cmd, out, kAcceptBytes)) return;
  CmId* const id = find(request, cmd.id, out, true);
  if (id == nullptr) return;
  const std::uint64_t before = id->cookie();
  std::optional<Offer> offer;
  if (cmd.conn_param.valid != 0) {
    offer = offer_of(cmd.conn_param);
    id->call_it(cmd.uid);  // the next event may come during accept()
  }
  // Only ids of AF_IB take the Q_Key from the command, and no instance has that family.
  out.error = manager_.accept(now, *id, offer, 0);
  if (out.error != 0) id->call_it(before);
}

void UcmCommands::reject(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_reject cmd;
  if (!read(request, cmd, out)) return;
  const std::uint16_t reason = cmd.reason == 0 ? reject_reason::consumer_defined : cmd.reason;
  if (reason != reject_reason::consumer_defined &&
      reason != reject_reason::vendor_option_unsupported) {
    out.error = EINVAL;
  } else if (CmId* const id = find(request, cmd.id, out, true)) {
    const auto data = std::as_bytes(std::span(cmd.private_data)).first(cmd.private_data_len);
    out.error = manager_.reject(now, *id, reason, data);
  }
}

void UcmCommands::disconnect(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_disconnect cmd;
  if (!read(request, cmd, out)) return;
  if (CmId* const id = find(request, cmd.id, out, true)) out.error = manager_.disconnect(now, *id);
}

void UcmCommands::init_qp_attr(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_init_qp_attr cmd;
  if (!has_room(request, sizeof(ib_uverbs_qp_attr), out) || !read(request, cmd, out)) return;
  if (cmd.qp_state > IBV_QPS_ERR) {
    out.error = EINVAL;
    return;
  }
  CmId* const id = find(request, cmd.id, out, true);
  if (id == nullptr) return;
  QpAttributes values;
  out.error = id->qp_attributes(cmd.qp_state, values);
  respond(qp_record(cmd.qp_state, values), out);
}

void UcmCommands::get_event(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_get_event cmd;
  if (!has_room(request, kEventBytes, out) || !read(request, cmd, out)) return;
  if (const std::optional<Event> event = manager_.next_event(request.channel)) {
    respond(event_record(*event), out);
  } else {
    out.error = EAGAIN;
  }
}

void UcmCommands::set_option(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_set_option cmd;
  if (!read(request, cmd, out)) return;
  CmId* const id = find(request, cmd.id, out);
  if (id == nullptr) return;
  IdOptions& options = id->options();
  const bool fresh = id->state() == CmId::State::idle;
  out.error = EINVAL;
  if (cmd.level != RDMA_OPTION_ID) {
    // A program cannot set routes: librdmacm then asks for one with RESOLVE_ROUTE.
    out.error =
        cmd.level == RDMA_OPTION_IB && cmd.optname == RDMA_OPTION_IB_PATH ? EOPNOTSUPP : ENOSYS;
    return;
  }
  const auto byte = option_value<std::uint8_t>(request.option);
  const auto number = option_value<std::int32_t>(request.option);
  switch (cmd.optname) {
    case RDMA_OPTION_ID_TOS:
      if (!byte) return;
      options.traffic_class = *byte;
      break;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!number || (!fresh && (*number == 0 || id->state() == CmId::State::listening))) return;
      options.reuse = *number != 0;
      break;
    case RDMA_OPTION_ID_AFONLY:
      if (!number || (!fresh && id->state() != CmId::State::bound)) return;
      options.own_family_only = *number != 0;
      break;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!byte || *byte == 0 || *byte > 31 || id->type() != IdType::rc) return;
      options.ack_timeout = *byte;
      break;
    default:
      out.error = ENOSYS;
      return;
  }
  out.error = 0;
}

void UcmCommands::notify(Nanos now, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_notify cmd;
  if (!read(request, cmd, out)) return;
  CmId* const id = find(request, cmd.id, out);
  if (id == nullptr || !id->nic()) return;  // like the kernel, does nothing
  if (cmd.event != IBV_EVENT_COMM_EST) {
    out.error = EINVAL;
    return;
  }
  out.error = manager_.data_has_come(now, *id);
  if (out.error == EISCONN) out.error = 0;
}

void UcmCommands::migrate_id(Nanos, const UcmRequest& request, UcmResult& out) {
  rdma_ucm_migrate_id cmd;
  if (!has_room(request, sizeof(rdma_ucm_migrate_resp), out) || !read(request, cmd, out)) return;
  if (request.other_channel == 0) {
    out.error = ENOENT;
    return;
  }
  rdma_ucm_migrate_resp seen{};
  out.error =
      manager_.migrate(request.other_channel, request.channel, cmd.id, seen.events_reported);
  respond(seen, out);
}

void UcmCommands::multicast(Nanos, const UcmRequest&, UcmResult& out) { out.error = EOPNOTSUPP; }

}  // namespace paceline::service::cm
