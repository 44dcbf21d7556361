#include "dataplane/service/cm/ids/cm_id.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>

namespace paceline::service::cm {

namespace {

constexpr std::uint32_t kDefaultQkey = 0x0123'4567;  // RDMA_UDP_QKEY
constexpr std::uint16_t kDefaultPartition = 0xFFFF;
// 4.096 us * 2^17 = 0.54 s, twice the packet lifetime that Linux assumes
// (CMA_IBOE_PACKET_LIFETIME).
constexpr std::uint8_t kAckTimeout = 17;

}  // namespace

Event CmId::event(EventKind kind, int status) const {
  Event out;
  out.kind = kind;
  out.status = status;
  out.counts_for = out.id = number_;
  out.cookie = cookie_;
  out.datagram = datagram();
  return out;
}

std::uint8_t CmId::ack_timeout() const { return options_.ack_timeout.value_or(kAckTimeout); }

PeerPath CmId::path() const {
  PeerPath out;
  out.destination = destination_.ip;
  out.port = source_place_.port;
  out.source_gid = source_place_.index;
  out.traffic_class = options_.traffic_class;
  out.service_level = static_cast<std::uint8_t>(options_.traffic_class >> 5U);
  return out;
}

void CmId::attach(const NicBook& nics, std::size_t nic) {
  nic_ = nic;
  source_place_ = nics.place_of(nic, source_.ip);
}

// Takes the port. The address must be unspecified, or belong to an instance that the program sees.
int CmId::claim(const NicBook& nics, PortTable& ports, const SocketAddress& address) {
  PortClaim claim;
  claim.id = number_;
  claim.space = space_;
  claim.address = address;
  claim.where = seen_;
  claim.reuse = options_.reuse;
  claim.own_family_only = options_.own_family_only;
  std::optional<std::size_t> nic;
  if (!address.any()) {
    nic = nics.owner(address.ip);
    if (!nic || !sees(seen_, *nic)) return EADDRNOTAVAIL;
    if (nics.gone(*nic)) return ENODEV;
    if (space_ == PortSpace::ipoib) return EINVAL;  // IP over InfiniBand
    claim.where = nic;
  }
  std::uint16_t port = address.port;
  if (const int error = ports.take(claim, port); error != 0) return error;
  source_ = address;
  source_.port = port;
  if (nic) attach(nics, *nic);
  return 0;
}

int CmId::bind(const NicBook& nics, PortTable& ports, const SocketAddress& address) {
  if (state_ != State::idle) return EINVAL;
  if (address.family == kAfIb) {
    // librdmacm binds to AF_IB to see whether the family is supported; no instance has such an
    // address.
    if (!address.any()) return ENODEV;
    source_ = address;
  } else if (const int error = claim(nics, ports, address); error != 0) {
    return error;
  }
  state_ = State::bound;
  return 0;
}

int CmId::resolve_address(const NicBook& nics, PortTable& ports, const SocketAddress& source,
                          const SocketAddress& destination, Event& out) {
  if (destination.family == kAfIb) return ENODEV;
  if (state_ == State::idle) {
    SocketAddress own = source;
    if (own.none()) own.family = destination.family;
    if (own.family == AF_INET && own.any()) own.ip = wire::IpAddress::v4(0);
    if (const int error = bind(nics, ports, own); error != 0) return error;
  }
  if (state_ != State::bound) return EINVAL;
  if (source_.family != destination.family) return EINVAL;
  SocketAddress to = destination;
  // Like Linux, takes the unspecified address and those of the loopback for this host.
  if (to.any()) {
    if (const auto own = nics.first(nic_ ? nic_ : seen_, to.v4())) {
      to.ip = source_.any() ? *nics.address_of(*own, to.v4()) : source_.ip;
    }
  }
  const std::optional<std::size_t> nic = nics.way_to(nic_ ? nic_ : seen_, to.ip);
  const bool bound = nic && !source_.any();
  const auto port = [&](const wire::IpAddress& own) { return nics.place_of(*nic, own).port; };
  if (!nic || (bound && port(source_.ip) != port(nics.source_for(*nic, to.ip)))) {
    out = event(EventKind::address_error, -EHOSTUNREACH);
    return 0;
  }
  if (!bound) {
    source_.ip = nics.source_for(*nic, to.ip);
    ports.settle(number_, source_, *nic);
  }
  attach(nics, *nic);
  destination_ = to;
  state_ = State::address_resolved;
  out = event(EventKind::address_resolved);
  return 0;
}

int CmId::resolve_route(Event& out) {
  if (state_ != State::address_resolved) return EINVAL;
  state_ = State::route_resolved;
  out = event(EventKind::route_resolved);
  return 0;
}

int CmId::listen(PortTable& ports, std::uint32_t backlog) {
  if (state_ != State::bound) return EINVAL;
  if (source_.family == kAfIb) return EAFNOSUPPORT;
  if (const int error = ports.listen(number_); error != 0) return error;
  backlog_ = backlog;
  state_ = State::listening;
  return 0;
}

// The fields that REQ and SIDR_REQ share.
Mad CmId::request(const NicBook& nics, std::span<const std::byte> data) const {
  Mad mad;
  mad.transaction = mad.local_id = message_id_;
  mad.service_id = service_id(space_, destination_.port);
  mad.partition_key = kDefaultPartition;
  mad.service_type = type_ == IdType::uc ? 1 : 0;
  mad.path_mtu = nics.mtu_code(*nic_);
  mad.path.local = source_.ip;
  mad.path.remote = destination_.ip;
  mad.path.packet_rate = nics.rate_code(*nic_);
  mad.path.traffic_class = options_.traffic_class;
  mad.path.hop_limit = path().hop_limit;
  mad.path.service_level = path().service_level;
  mad.path.ack_timeout = ack_timeout();
  put_ip_header(mad.private_data.data(),
                {source_.ip, destination_.ip, source_.port, destination_.v4()});
  std::copy(data.begin(), data.end(), mad.private_data.begin() + kIpHeaderBytes);
  return mad;
}

int CmId::connect(Nanos now, const NicBook& nics, const Offer& offer, std::uint32_t message_id,
                  std::uint32_t psn, Actions& out) {
  if (state_ != State::route_resolved) return EINVAL;
  if (offer.private_data.size() > (datagram() ? kLookupRoom : kRequestRoom)) return EINVAL;
  message_id_ = message_id;
  state_ = State::connecting;
  if (datagram()) {
    lookup_.emplace().ask(now, request(nics, offer.private_data), out);
    return 0;
  }
  connection_.emplace(message_id, nics.nic(*nic_).guid, psn);
  return connection_->connect(now, offer, request(nics, offer.private_data), out);
}

int CmId::accept(Nanos now, const std::optional<Offer>& offer, std::uint32_t qkey, Actions& out) {
  if (state_ != State::connecting) return EINVAL;
  const std::size_t size = offer ? offer->private_data.size() : 0;
  if (datagram()) {
    if (!answer_.due() || size > private_bytes(Attribute::sidr_rep)) return EINVAL;
    if (qkey_ != 0 && qkey != 0 && qkey_ != qkey) return EINVAL;
    if (qkey_ == 0) qkey_ = qkey != 0 ? qkey : kDefaultQkey;
    Mad answer = answer_.draft(sidr_status::success,
                               offer ? offer->private_data : std::span<const std::byte>{});
    answer.qp_number = offer ? offer->qp_number : 0;
    answer.qkey = qkey_;
    answer_.give(answer, out);
    return 0;
  }
  if (!connection_) return EINVAL;
  if (connection_->state() == Connection::State::rep_received) return connection_->confirm(out);
  if (!offer || size > private_bytes(Attribute::rep)) return EINVAL;
  return connection_->accept(now, *offer, out);
}

int CmId::reject(std::uint16_t reason, std::span<const std::byte> private_data, Actions& out) {
  if (datagram()) {
    if (!answer_.due() || private_data.size() > private_bytes(Attribute::sidr_rep)) return EINVAL;
    answer_.give(answer_.draft(sidr_status::rejected, private_data), out);
    return 0;
  }
  if (!connection_ || private_data.size() > private_bytes(Attribute::rej)) return EINVAL;
  return connection_->reject(reason, private_data, out);
}

int CmId::disconnect(Nanos now, Actions& out) {
  if (!connection_) return EINVAL;
  connection_->disconnect(now, out);  // like Linux, succeeds also without a connection
  return 0;
}

int CmId::data_has_come(Actions& out) {
  if (!connection_) return EINVAL;
  return connection_->data_has_come(out);
}

int CmId::qp_attributes(std::uint32_t state, QpAttributes& out) const {
  out = {};
  out.path = path();
  out.mask = IBV_QP_STATE;
  if (datagram() || !connection_) {
    out.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    out.mask |= datagram() ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    out.qkey = qkey_ != 0 ? qkey_ : kDefaultQkey;
    return 0;
  }
  const bool rc = type_ == IdType::rc;
  out.agreed = connection_->agreed();
  out.path_mtu = out.agreed.path_mtu;
  switch (state) {
    case IBV_QPS_INIT:
      if (!connection_->under_way()) return EINVAL;
      out.mask |= IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
      out.access = IBV_ACCESS_REMOTE_WRITE;
      if (rc && out.agreed.responder_resources != 0) {
        out.access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
      }
      return 0;
    case IBV_QPS_RTR:
      if (!connection_->knows_peer()) return EINVAL;
      out.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
      if (rc) out.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      return 0;
    case IBV_QPS_RTS:
      if (!connection_->knows_peer()) return EINVAL;
      out.mask |= IBV_QP_SQ_PSN;
      if (rc) {
        out.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
      }
      return 0;
    default:
      return EINVAL;
  }
}

Event CmId::lose_device() {
  state_ = State::lost;
  nic_.reset();
  connection_.reset();
  lookup_.reset();
  answer_ = {};
  return event(EventKind::device_removal);
}

void CmId::end(Nanos now, Actions& out) {
  if (connection_) connection_->end(now, out);
  if (answer_.due()) answer_.give(answer_.draft(sidr_status::rejected, {}), out);
  lookup_.reset();
}

void CmId::become_passive(const NicBook& nics, std::size_t nic, const IpHeader& header,
                          std::uint16_t port, const Mad& request, std::uint32_t message_id,
                          std::uint32_t psn) {
  const std::uint16_t family = header.v4 ? AF_INET : AF_INET6;
  source_.family = destination_.family = family;
  source_.ip = header.destination;
  source_.port = port;
  destination_.ip = header.source;
  destination_.port = header.source_port;
  attach(nics, nic);
  state_ = State::connecting;
  message_id_ = message_id;
  if (request.attribute == Attribute::sidr_req) {
    answer_.take_request(request);
    return;
  }
  options_.traffic_class = request.path.traffic_class;
  connection_.emplace(message_id, nics.nic(nic).guid, psn);
  connection_->take_request(request);
}

Event CmId::request_event(const CmId& listener, const Mad& request) const {
  Event out = listener.event(EventKind::connect_request);
  out.id = number_;
  const auto data = std::span(request.private_data).first(private_bytes(request.attribute));
  out.private_data.assign(data.begin() + kIpHeaderBytes, data.end());
  if (datagram()) return out;
  out.qp_number = request.qp_number;
  out.shared_receives = request.shared_receives;
  // READs that one end starts are answered by the other.
  out.responder_resources = request.initiator_depth;
  out.initiator_depth = request.responder_resources;
  out.flow_control = request.flow_control;
  out.retry_count = request.retry_count;
  out.rnr_retry_count = request.rnr_retry_count;
  return out;
}

std::optional<Event> CmId::event_of(const Notice& notice) const {
  const Mad& mad = notice.cause;
  const auto data = std::span(mad.private_data).first(private_bytes(mad.attribute));
  const auto told = [&](EventKind kind, bool with_data) {
    Event out = event(kind, notice.status);
    if (with_data) out.private_data.assign(data.begin(), data.end());
    return out;
  };
  switch (notice.kind) {
    case NoticeKind::response: {
      Event out = told(EventKind::connect_response, true);
      out.qp_number = mad.qp_number;
      out.shared_receives = mad.shared_receives;
      out.responder_resources = mad.initiator_depth;
      out.initiator_depth = mad.responder_resources;
      out.flow_control = mad.flow_control;
      out.rnr_retry_count = mad.rnr_retry_count;
      return out;
    }
    case NoticeKind::established:
      return told(EventKind::established, false);
    case NoticeKind::rejected:
      return told(EventKind::rejected, true);
    case NoticeKind::unreachable:
      return told(EventKind::unreachable, false);
    case NoticeKind::disconnected:
      return told(EventKind::disconnected, false);
    case NoticeKind::timewait_over:
      return told(EventKind::timewait_exit, false);
  }
  return std::nullopt;
}

void CmId::receive(Nanos now, const Mad& mad, Actions& out, std::optional<Event>& told) {
  if (connection_) return connection_->receive(now, mad, out);
  if (mad.attribute == Attribute::sidr_req) return answer_.repeat(out);
  if (!lookup_ || !lookup_->receive(mad)) return;
  if (mad.status != sidr_status::success) {
    told = event(EventKind::unreachable, mad.status);
    return;
  }
  told = event(EventKind::established);
  told->qp_number = mad.qp_number;
  told->qkey = mad.qkey;
  told->path = path();
  const auto data = std::span(mad.private_data).first(private_bytes(mad.attribute));
  told->private_data.assign(data.begin(), data.end());
}

void CmId::expire(Nanos now, Actions& out, std::optional<Event>& told) {
  if (connection_) return connection_->expire(now, out);
  if (lookup_ && lookup_->expire(now, out)) told = event(EventKind::unreachable, -ETIMEDOUT);
}

Nanos CmId::deadline() const {
  if (connection_) return connection_->deadline();
  return lookup_ ? lookup_->deadline() : kNeverNanos;
}

}  // namespace paceline::service::cm
