// Links that fail, come back and change while packets are in flight. Before anything changes, the
// departures that were due are decided under the old state; the agenda acts after all links at its
// time, so departures at T precede the event at T however they are decided.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/link_event.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/fabric/wire/link_agenda.h"

namespace paceline::fabric {

class LinkChanges {
 public:
  // Both must outlive this.
  LinkChanges(const FabricSpec& spec, Forwarding& forwarding)
      : forwarding_(forwarding), agenda_(spec) {}

  void add(std::span<const LinkEvent> events) { agenda_.add(events); }
  // When run() is due; kNever: nothing is left.
  Picos next() const { return agenda_.next(); }
  // By link of the spec: whether the switches consider it failed.
  const std::vector<bool>& failed() const { return agenda_.failed(); }
  // Events so far, without the pauses that hosts tell switches.
  std::uint64_t happened() const { return happened_; }
  void run(Picos now);

 private:
  void happen(const LinkEvent& event, Picos now);
  void change(Link& link, const LinkEvent& event);
  void take_down(Link& link, Picos now);
  void bring_up(Link& link, Picos now);
  void lose_in_flight(Link& link, Picos now);
  void lose_queued(Link& link, Picos now);
  void forget_pauses(Link& link, Picos now);
  void happen_elsewhere(Link& link, LinkAction action);
  // The host at the beginning of this link tells the switch to pause the lossless classes, or not.
  void tell(Link& uplink, bool pause, Picos now);
  void take(Link& uplink, Rate rate, Picos now);

  // A host that takes arriving packets at a rate of its own.
  struct Intake {
    std::uint32_t uplink = 0;
    std::uint64_t arrived = 0;  // bytes, when it was looked at last
    double waiting = 0;         // bytes that it has not taken
    Picos at{0};
    bool pauses = false;
  };

  Forwarding& forwarding_;
  LinkAgenda agenda_;
  std::vector<Intake> intakes_;
  std::uint64_t happened_ = 0;
};

}  // namespace paceline::fabric
