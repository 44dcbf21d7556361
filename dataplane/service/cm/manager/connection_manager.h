// The connection manager of a service: the CM ids of all programs, their channels of events, the
// ports, and the messages between them. On the control thread; it has no socket and reads no clock.
//
// Messages go from instance to instance of this service as the bytes of a management datagram, and
// are read at the other end as if they had come from a network; carry() is the only place that
// knows that there is none. An instance without a link sends and receives nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/random.h"
#include "dataplane/base/units.h"
#include "dataplane/service/cm/ids/cm_id.h"
#include "dataplane/service/cm/ids/event.h"
#include "dataplane/service/cm/tables/nic_book.h"
#include "dataplane/service/cm/tables/port_table.h"

namespace paceline::service::cm {

class ConnectionManager {
 public:
  // Of one channel; rdma_create_id beyond that is refused with ENOMEM, and a connection request to
  // a listener is rejected.
  static constexpr std::size_t kMostIds = 1U << 16U;
  static constexpr std::uint32_t kMostBacklog = 1024;  // Linux: max_backlog of rdma_ucm

  ConnectionManager(NicBook nics, std::uint64_t seed);

  // --- channels of events ---
  std::uint32_t open_channel(const Visible& seen);
  // And with it all its ids.
  void close_channel(Nanos now, std::uint32_t channel);
  bool has_events(std::uint32_t channel) const;
  // Nothing: there is none. Counts it as reported.
  std::optional<Event> next_event(std::uint32_t channel);
  // Channels that had no event before one came, once each; since the last call.
  std::vector<std::uint32_t> take_woken() { return std::exchange(woken_, {}); }

  // --- ids: ENOENT where there is none, EINVAL where it is another channel's ---
  int create(std::uint32_t channel, std::uint64_t cookie, PortSpace space, IdType type,
             std::uint32_t& id);
  // `reported`: how many of its events the program has seen.
  int destroy(Nanos now, std::uint32_t channel, std::uint32_t id, std::uint32_t& reported);
  int find(std::uint32_t channel, std::uint32_t id, CmId*& out);
  // From one channel to another of the same program.
  int migrate(std::uint32_t from, std::uint32_t to, std::uint32_t id, std::uint32_t& reported);

  int bind(CmId& id, const SocketAddress& address) { return id.bind(nics_, ports_, address); }
  int resolve_address(CmId& id, const SocketAddress& source, const SocketAddress& destination);
  int resolve_route(CmId& id);
  int listen(CmId& id, std::uint32_t backlog);
  int connect(Nanos now, CmId& id, const Offer& offer);
  int accept(Nanos now, CmId& id, const std::optional<Offer>& offer, std::uint32_t qkey);
  int reject(Nanos now, CmId& id, std::uint16_t reason, std::span<const std::byte> private_data);
  int disconnect(Nanos now, CmId& id);
  int data_has_come(Nanos now, CmId& id);

  // --- what the clock says ---
  Nanos deadline() const { return timers_.empty() ? kNeverNanos : Nanos{timers_.begin()->first}; }
  void expire(Nanos now);

  const NicBook& nics() const { return nics_; }
  std::size_t ids_of(std::uint32_t channel) const;
  std::size_t listeners_of(std::uint32_t channel) const;

 private:
  struct Channel {
    Visible seen;
    std::deque<Event> events;
    std::size_t ids = 0;
  };
  struct Entry {
    Entry(const CmId& made, std::uint32_t of) : id(made), channel(of) {}
    CmId id;
    std::uint32_t channel;
    std::uint32_t reported = 0;
    std::uint32_t unreported_requests = 0;  // of a listener
    Nanos timer = kNeverNanos;
    std::optional<std::pair<wire::IpAddress, std::uint32_t>> request;  // its place in requests_
  };
  struct Parcel {
    std::size_t from;
    wire::IpAddress source;
    wire::IpAddress destination;
    MadBytes bytes;
  };

  Entry* entry(std::uint32_t id);
  Entry* by_message(std::uint32_t message_id, const wire::IpAddress& from);
  std::uint32_t fresh_message_id(std::uint32_t id);
  void queue(Event event);
  // What came of something that happened to an id: messages, events, its timer.
  void perform(Entry& of, Actions& actions, std::optional<Event> event);
  int after(Nanos now, CmId& id, int error, Actions& actions);
  void retime(Entry& of);
  void post(const Parcel& parcel) { parcels_.push_back(parcel); }
  void answer(std::size_t nic, const Parcel& to, const Mad& mad);
  void carry(Nanos now);
  void deliver(Nanos now, std::size_t nic, const Parcel& parcel, const Mad& mad);
  void receive_request(Nanos now, std::size_t nic, const Parcel& parcel, const Mad& mad);
  void refuse(std::size_t nic, const Parcel& parcel, const Mad& request, std::uint16_t reason);
  void erase(Nanos now, std::uint32_t id);

  NicBook nics_;
  PortTable ports_;
  Random random_;
  std::map<std::uint32_t, Channel> channels_;
  std::map<std::uint32_t, Entry> ids_;
  std::map<std::uint32_t, std::uint32_t> messages_;                              // message id -> id
  std::map<std::pair<wire::IpAddress, std::uint32_t>, std::uint32_t> requests_;  // of peers
  std::set<std::pair<std::int64_t, std::uint32_t>> timers_;
  std::deque<Parcel> parcels_;
  std::vector<std::uint32_t> woken_;
  std::uint32_t last_channel_ = 0;
  std::uint32_t last_id_ = 0;
};

}  // namespace paceline::service::cm
