// The connection manager of a service: the CM ids of all programs, their event channels, the ports,
// and the messages between ids. Runs on the control thread; has no socket and reads no clock.
//
// Messages between NIC instances of this service are serialised as management datagrams and parsed
// at the other end, as if they had crossed a network; only carry() knows that they did not.
// Messages to other addresses wait in mail() for the caller that takes them to queue pair 1;
// arrive() handles what came there. An instance whose link is down neither sends nor receives.
//
// An id whose program is gone stays without one while its peer, on another machine, may need a
// repeated message.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"
#include "dataplane/service/cm/ids/cm_id.h"
#include "dataplane/service/cm/ids/event.h"
#include "dataplane/service/cm/manager/mailbox.h"
#include "dataplane/service/cm/tables/nic_book.h"
#include "dataplane/service/cm/tables/port_table.h"

namespace paceline::service::cm {

class ConnectionManager {
 public:
  // Ids of one channel. Beyond that rdma_create_id fails with ENOMEM, and connection requests to
  // listeners are rejected.
  static constexpr std::size_t kMostIds = 1U << 16U;
  static constexpr std::size_t kMostLeft = 4096;       // ids without a program
  static constexpr std::uint32_t kMostBacklog = 1024;  // Linux: max_backlog of rdma_ucm

  ConnectionManager(NicBook nics, std::uint64_t seed);

  // --- event channels ---
  std::uint32_t open_channel(const Visible& seen);
  // Destroys its ids as well.
  void close_channel(Nanos now, std::uint32_t channel);
  bool has_events(std::uint32_t channel) const;
  // Takes the next event and counts it as reported; nothing if none waits.
  std::optional<Event> next_event(std::uint32_t channel);
  // Channels that got a first event since the last call, each once.
  std::vector<std::uint32_t> take_woken() { return std::exchange(woken_, {}); }

  // --- ids; they return 0 or an errno: ENOENT without such an id, EINVAL if another channel owns
  // it ---
  int create(std::uint32_t channel, std::uint64_t cookie, PortSpace space, IdType type,
             std::uint32_t& id);
  // `reported` becomes the number of its events that the program has taken.
  int destroy(Nanos now, std::uint32_t channel, std::uint32_t id, std::uint32_t& reported);
  int find(std::uint32_t channel, std::uint32_t id, CmId*& out);
  // Moves an id to another channel of the same program.
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

  // --- other machines ---
  Mailbox& mail() { return mail_; }
  // A datagram has arrived at queue pair 1. Its bytes are not trusted.
  void arrive(Nanos now, const Parcel& parcel, std::span<const std::byte> bytes);

  // An instance has left the machine: its ids get an event and have no device any more.
  void take_away(std::size_t nic);

  // --- timers ---
  Nanos deadline() const { return timers_.empty() ? kNeverNanos : Nanos{timers_.begin()->first}; }
  void expire(Nanos now);

  const NicBook& nics() const { return nics_; }
  struct Holdings {
    std::size_t ids = 0;
    std::size_t listeners = 0;  // among the ids
  };
  Holdings holdings_of(std::uint32_t channel) const;

 private:
  struct Channel {
    Visible seen;
    std::deque<Event> events;
    std::size_t ids = 0;
  };
  struct Entry {
    Entry(const CmId& made, std::uint32_t of) : id(made), channel(of) {}
    CmId id;
    std::uint32_t channel;  // 0: its program is gone
    std::uint32_t reported = 0;
    std::uint32_t unreported_requests = 0;  // of a listener
    Nanos timer = kNeverNanos;
    std::optional<std::pair<wire::IpAddress, std::uint32_t>> request;  // its place in requests_
    std::uint64_t transaction = 0;                                     // of that request
  };

  Entry* entry(std::uint32_t id);
  Entry* receiver_of(const Parcel& parcel, const Mad& mad);
  bool outside(const wire::IpAddress& address) const { return !nics_.owner(address); }
  std::uint32_t fresh_message_id(std::uint32_t id);
  void queue(Event event);
  // Carries out what an id asked for: sends messages, queues events, sets its timer.
  void perform(Entry& of, Actions& actions, std::optional<Event> event);
  int after(Nanos now, CmId& id, int error, Actions& actions);
  void retime(Entry& of);
  void answer(std::size_t nic, const Parcel& to, const Mad& mad) {
    mail_.post({nic, to.destination, to.source, {}}, mad, outside(to.source));
  }
  void carry(Nanos now);
  void deliver(Nanos now, std::size_t nic, const Parcel& parcel, const Mad& mad);
  void receive_request(std::size_t nic, const Parcel& parcel, const Mad& mad);
  void erase(Nanos now, std::uint32_t id);
  void remove(std::uint32_t id);
  void remove_if_over(std::uint32_t id);

  NicBook nics_;
  PortTable ports_;
  Random random_;
  std::map<std::uint32_t, Channel> channels_;
  std::map<std::uint32_t, Entry> ids_;
  std::map<std::uint32_t, std::uint32_t> messages_;                              // message id -> id
  std::map<std::pair<wire::IpAddress, std::uint32_t>, std::uint32_t> requests_;  // of peers
  std::set<std::pair<std::int64_t, std::uint32_t>> timers_;
  Mailbox mail_;
  std::size_t left_ = 0;  // ids without a program
  std::vector<std::uint32_t> woken_;
  std::uint32_t last_channel_ = 0;
  std::uint32_t last_id_ = 0;
};

}  // namespace paceline::service::cm
