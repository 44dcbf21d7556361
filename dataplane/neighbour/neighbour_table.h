// Maps IP addresses on the link to MAC addresses, by neighbour unreachability detection (RFC 4861,
// 7.3 and appendix C), for IPv6 and, with ARP in place of solicitations, for IPv4.
// A state machine without packets: messages and time go in, "solicit", "resolved" and "failed" come
// out. Owned by one thread. Nothing is allocated after construction.
//
//   incomplete  asked by broadcast or multicast, no answer yet
//   reachable   confirmed in both directions not long ago
//   stale       an address that may be out of date: used, and verified once it is used
//   delay       stale and used; an upper layer may confirm it before we ask
//   probe       asked by unicast
//   failed      not in the RFC, which deletes the entry: there was no answer; not asked for
//               again until the entry expires (a negative cache)
//   fixed       configured; no message changes it
//
// Capacity is fixed. Neighbours that we send to ("active") and neighbours that only spoke to us
// ("heard") are kept apart. A heard neighbour takes a free place within its quota, or the place of
// the heard one that was silent longest. An active one takes a free place, else that of a heard
// one, of a failed one, or of the stale one that has been stale longest and that we have not sent
// to for evict_idle. Incomplete, reachable and fixed entries, and entries being verified, stay. So
// invented neighbours, however many, evict only each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/containers/deadline_tree.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/neighbour/neighbour_config.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::neighbour {

enum class NeighbourState : std::uint8_t {
  incomplete,
  reachable,
  stale,
  delay,
  probe,
  failed,
  fixed,
};
inline constexpr std::size_t kNeighbourStates = 7;
const char* to_string(NeighbourState state);

struct Neighbour {
  wire::IpAddress ip;
  wire::MacAddress mac;
  NeighbourState state = NeighbourState::incomplete;
  bool heard = false;       // we never sent to it
  bool handed_out = false;  // its address is remembered elsewhere until the epoch changes
  bool router = false;      // said so itself (advertisement)
  std::uint8_t local = 0;   // which own address asks for it
  std::uint8_t list = 0;    // intrusive list it is in
  std::uint32_t solicits = 0;
  Picos used_at{0};  // last sent to, as far as we were told
  std::uint32_t older = 0;
  std::uint32_t newer = 0;
};

struct NeighbourCounters {
  std::uint64_t created = 0;
  std::uint64_t solicits_multicast = 0;
  std::uint64_t solicits_unicast = 0;
  std::uint64_t resolved = 0;         // incomplete became known
  std::uint64_t confirmed = 0;        // reachability confirmed by an answer
  std::uint64_t address_changes = 0;  // a known neighbour has another MAC address
  std::uint64_t failed = 0;           // no answer came
  std::uint64_t restarted = 0;        // in use, did not answer by unicast: asked again by multicast
  std::uint64_t aged = 0;             // forgotten for not being used
  std::uint64_t evicted_heard = 0;
  std::uint64_t evicted_failed = 0;
  std::uint64_t evicted_stale = 0;
  std::uint64_t refused_full = 0;      // no place for a neighbour that we want to send to
  std::uint64_t refused_heard = 0;     // no place for one that spoke to us
  std::uint64_t refused_fixed = 0;     // a message contradicted a configured entry
  std::uint64_t refused_override = 0;  // an advertisement without O contradicted what is known
  std::uint64_t ignored = 0;           // about a neighbour that is not in the table
};

class NeighbourTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  static constexpr std::uint32_t kMaxCapacity = 65'536;

  // capacity is what `problems` allows.
  NeighbourTable(const NeighbourTiming& timing, const NeighbourLimits& limits, Random random);

  // --- sending ---
  enum class Use : std::uint8_t {
    send,    // to `mac`, and to further packets until valid_until unless the epoch changes before
    wait,    // asked; resolved or failed will tell
    failed,  // no answer came; not asked again yet
    full,    // no place in the table
  };
  struct Route {
    Use use = Use::full;
    std::uint32_t index = kNone;
    wire::MacAddress mac;
    Picos valid_until{0};
  };
  // A packet is to go to the neighbour `ip` (on the link); `local` is the own address that asks.
  Route use(Picos now, const wire::IpAddress& ip, std::uint8_t local);
  // Changes whenever an address that `use` gave out may no longer be used without asking again.
  std::uint64_t epoch() const { return epoch_; }

  // --- messages ---
  // Each returns the index of a neighbour that was incomplete or failed and is now known, or kNone.
  // A host on the link told its address in a request: RFC 826; RFC 4861, 7.2.3. `create`: it asked
  // for one of our addresses, so it is about to send to us.
  std::uint32_t on_request(Picos now, const wire::IpAddress& ip, const wire::MacAddress& mac,
                           std::uint8_t local, bool create);
  struct Advertisement {
    wire::IpAddress ip;
    std::optional<wire::MacAddress> mac;
    bool solicited = false;
    bool overrides = false;
    bool router = false;
  };
  // RFC 4861, 7.2.5. An ARP reply is solicited if it was asked for (see asked), and overrides.
  std::uint32_t on_advertisement(Picos now, const Advertisement& advertisement);
  // Have we asked `ip` and are waiting for the answer?
  bool asked(const wire::IpAddress& ip) const;
  // Something above saw that the neighbour gets what we send (RFC 4861, 7.3.1).
  void confirm(Picos now, const wire::IpAddress& ip);

  // --- time ---
  enum class Action : std::uint8_t { none, solicit_multicast, solicit_unicast, failed };
  struct Due {
    Action action = Action::none;
    std::uint32_t index = kNone;
  };
  // The next due event: call until there is none. The cost grows with due events, not with entries.
  Due next_due(Picos now);
  Picos next_deadline() const { return timers_.next_deadline(); }

  // --- configuration ---
  // False when there is no place.
  bool add_fixed(const wire::IpAddress& ip, const wire::MacAddress& mac);

  // --- looking in ---
  const Neighbour& operator[](std::uint32_t index) const { return entries_[index]; }
  // kNone when unknown.
  std::uint32_t find(const wire::IpAddress& ip) const;
  std::uint32_t size() const { return capacity_ - lists_[kFree].size; }
  std::uint32_t heard() const { return lists_[kHeard].size; }
  std::uint32_t capacity() const { return capacity_; }
  const NeighbourCounters& counters() const { return counters_; }
  // Lists, index and timers agree. Empty when all holds; for tests.
  const char* check() const;

 private:
  // Where an entry is kept; the ends of lists are ordered by age.
  enum List : std::uint8_t { kFree, kHeard, kFailed, kStale, kBusy, kLists };
  struct Ends {
    std::uint32_t oldest = kNone;
    std::uint32_t newest = kNone;
    std::uint32_t size = 0;
  };

  std::size_t slot_of(const wire::IpAddress& ip) const;
  void index_insert(std::uint32_t entry);
  void index_erase(std::uint32_t entry);
  void unlink(std::uint32_t entry);
  void link(std::uint32_t entry, List list);
  std::uint32_t create(const wire::IpAddress& ip, bool heard, std::uint8_t local);
  void forget(std::uint32_t entry);
  std::uint32_t place_for_active(Picos now);
  std::uint32_t place_for_heard();
  void become(std::uint32_t entry, NeighbourState state, Picos deadline);
  void become_stale(Picos now, std::uint32_t entry);
  void become_reachable(Picos now, std::uint32_t entry);
  void start_asking(Picos now, std::uint32_t entry);
  void set_mac(std::uint32_t entry, const wire::MacAddress& mac);
  void withdraw(std::uint32_t entry);
  Due solicit(Picos now, std::uint32_t entry);

  NeighbourTiming timing_;
  std::uint32_t capacity_;
  std::uint32_t heard_capacity_;
  Random random_;
  std::uint64_t salt_;  // of the index: an attacker's addresses fall into unpredictable places
  std::uint64_t epoch_ = 0;
  std::vector<Neighbour> entries_;
  std::vector<std::uint32_t> index_;  // open addressing, linear probing; kNone is empty
  std::size_t index_mask_;
  std::array<Ends, kLists> lists_{};
  DeadlineTree timers_;
  NeighbourCounters counters_;
};

}  // namespace paceline::neighbour
