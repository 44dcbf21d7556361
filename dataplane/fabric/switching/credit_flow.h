// Credit-based flow control on the links of a fabric: turns the counts of CreditBook into updates
// on the wire and into waiting classes. A link that takes part has Link::kCredits and
// Link::kGrants, so that all of this is on the slow path. A class without credits is paused as if
// the far end had paused it. A departure returns credits at its time, so every departure in such a
// fabric is an event.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/fabric/switching/credits.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/fabric/wire/pause_times.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/fabric/wire/wire.h"

namespace paceline::fabric {

class CreditFlow {
 public:
  // spec.credit.enabled. All must outlive this. The links of the wire take part from now on.
  CreditFlow(const FabricSpec& spec, Wire& wire, PauseTimes& pauses, NetworkStats& stats);

  const CreditBook& book() const { return book_; }
  bool covers(std::uint8_t traffic_class) const { return book_.covers(traffic_class); }

  // All of the following for classes that are covered. A packet has begun to leave by `link`.
  void spend(Link& link, std::uint8_t traffic_class, std::uint32_t bytes);
  // A packet has arrived by `link`.
  void arrived(const Link& link, std::uint8_t traffic_class, std::uint32_t bytes) {
    book_.take_in(link.id, traffic_class, bytes);
  }
  // A packet that had arrived has left the buffer, or is lost there; `back` leads to its sender.
  void released(Link& back, std::uint8_t traffic_class, std::uint32_t bytes, Picos now);
  // An update for `back` has arrived. True: the class has waited, and may send.
  bool heard(const Link& back, std::uint8_t traffic_class, std::uint64_t limit);
  // The link has come up, and so has the one that leads back: both ends count from zero, and the
  // far end of the other one says what it has room for.
  void restart(Link& link, Picos now);

  // Replaces what `other` moves: the near end of a link, and the far end of the link that leads
  // back.
  void take_over(const CreditFlow& other, std::uint32_t link);

 private:
  // The class waits from `since` on.
  void stall(Link& link, std::uint8_t traffic_class, Picos since);
  void send(Link& back, std::uint8_t traffic_class, std::uint64_t limit, Picos now);

  CreditBook book_;
  Wire& wire_;
  PauseTimes& pauses_;
  NetworkStats& stats_;
};

}  // namespace paceline::fabric
