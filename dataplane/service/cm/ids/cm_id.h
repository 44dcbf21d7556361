// A CM id of a program, as made by rdma_create_id: its addresses, its NIC instance, and its
// connection or lookup. States and errors are those of Linux's rdma_cm. ConnectionManager owns it,
// carries its messages and queues its events.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/ids/event.h"
#include "dataplane/service/cm/mad/ip_service.h"
#include "dataplane/service/cm/mad/mad.h"
#include "dataplane/service/cm/states/connection.h"
#include "dataplane/service/cm/states/lookup.h"
#include "dataplane/service/cm/tables/nic_book.h"
#include "dataplane/service/cm/tables/port_table.h"
#include "dataplane/service/cm/tables/socket_address.h"

namespace paceline::service::cm {

// The types of queue pairs that programs can create; numbers of enum ibv_qp_type.
enum class IdType : std::uint8_t { rc = 2, uc = 3, ud = 4 };

struct IdOptions {
  std::uint8_t traffic_class = 0;
  bool reuse = false;
  bool own_family_only = false;
  std::optional<std::uint8_t> ack_timeout;  // 4.096 us * 2^value
};

// Attributes that the program passes to ibv_modify_qp.
struct QpAttributes {
  std::uint32_t mask = 0;  // enum ibv_qp_attr_mask
  std::uint32_t access = 0;
  std::uint32_t qkey = 0;
  std::uint8_t path_mtu = 0;
  Agreed agreed{};
  PeerPath path{};
};

class CmId {
 public:
  enum class State : std::uint8_t {
    idle,
    bound,
    address_resolved,
    route_resolved,
    listening,
    connecting,  // or connected: see Connection::State
    lost,        // its device is gone
  };
  // The most bytes of private data that a program may give.
  static constexpr std::size_t kRequestRoom = private_bytes(Attribute::req) - kIpHeaderBytes;
  static constexpr std::size_t kLookupRoom = private_bytes(Attribute::sidr_req) - kIpHeaderBytes;

  // `seen`: the NIC instances that its program sees.
  CmId(std::uint32_t number, std::uint64_t cookie, PortSpace space, IdType type, Visible seen)
      : number_(number), cookie_(cookie), space_(space), type_(type), seen_(seen) {}

  // --- calls of the program; they return 0 or an errno ---
  int bind(const NicBook& nics, PortTable& ports, const SocketAddress& address);
  // If it returns 0, `out` is the event to report. If source.none(), the service chooses the
  // source.
  int resolve_address(const NicBook& nics, PortTable& ports, const SocketAddress& source,
                      const SocketAddress& destination, Event& out);
  int resolve_route(Event& out);
  int listen(PortTable& ports, std::uint32_t backlog);
  // `message_id` becomes the communication id, and must be unique; `psn` must be random.
  int connect(Nanos now, const NicBook& nics, const Offer& offer, std::uint32_t message_id,
              std::uint32_t psn, Actions& out);
  // On the active end without an offer: confirms the response.
  int accept(Nanos now, const std::optional<Offer>& offer, std::uint32_t qkey, Actions& out);
  int reject(std::uint16_t reason, std::span<const std::byte> private_data, Actions& out);
  int disconnect(Nanos now, Actions& out);
  int data_has_come(Actions& out);
  // `state`: a value of enum ibv_qp_state.
  int qp_attributes(std::uint32_t state, QpAttributes& out) const;
  // Its device has left the machine. Returns the event to report.
  Event lose_device();
  // The last call of the program. Once over(), the other end needs no more messages.
  void end(Nanos now, Actions& out);
  bool over() const { return !connection_ || connection_->idle(); }

  // --- a new id for a request that arrived at a listener, at instance `nic` ---
  void become_passive(const NicBook& nics, std::size_t nic, const IpHeader& header,
                      std::uint16_t port, const Mad& request, std::uint32_t message_id,
                      std::uint32_t psn);
  Event request_event(const CmId& listener, const Mad& request) const;

  // --- messages and timers; `told` becomes the event to report, if any ---
  void receive(Nanos now, const Mad& mad, Actions& out, std::optional<Event>& told);
  void expire(Nanos now, Actions& out, std::optional<Event>& told);
  Nanos deadline() const;
  // The event for a notice; nothing if programs are not told of it.
  std::optional<Event> event_of(const Notice& notice) const;

  std::uint32_t number() const { return number_; }
  std::uint64_t cookie() const { return cookie_; }
  void call_it(std::uint64_t cookie) { cookie_ = cookie; }
  PortSpace space() const { return space_; }
  IdType type() const { return type_; }
  bool datagram() const { return type_ == IdType::ud; }
  State state() const { return state_; }
  const Visible& seen() const { return seen_; }
  const SocketAddress& source() const { return source_; }
  const SocketAddress& destination() const { return destination_; }
  std::optional<std::size_t> nic() const { return nic_; }
  std::uint32_t message_id() const { return message_id_; }
  const Connection* connection() const { return connection_ ? &*connection_ : nullptr; }
  PeerPath path() const;
  std::uint8_t ack_timeout() const;
  IdOptions& options() { return options_; }
  std::uint32_t backlog() const { return backlog_; }

 private:
  int claim(const NicBook& nics, PortTable& ports, const SocketAddress& address);
  Mad request(const NicBook& nics, std::span<const std::byte> data) const;
  Event event(EventKind kind, int status = 0) const;
  void attach(const NicBook& nics, std::size_t nic);

  std::uint32_t number_;
  std::uint64_t cookie_;
  PortSpace space_;
  IdType type_;
  State state_ = State::idle;
  Visible seen_;
  SocketAddress source_{};
  SocketAddress destination_{};
  std::optional<std::size_t> nic_;
  GidPlace source_place_{};  // of source_, once nic_ is known
  IdOptions options_{};
  std::uint32_t backlog_ = 0;
  std::uint32_t qkey_ = 0;
  std::uint32_t message_id_ = 0;
  std::optional<Connection> connection_;
  std::optional<Lookup> lookup_;
  LookupAnswer answer_;
};

}  // namespace paceline::service::cm
