#include "dataplane/driver/virtual/look_ahead.h"

#include "dataplane/base/prefetch.h"

namespace paceline {

void LookAhead::prefetch_host(std::uint32_t host) const {
  const WorldHost& at = (*hosts_)[host];
  at.engine.lookahead().load_state();
  prefetch_line(&at.app);
  fabric_.prefetch_port(host);
  wheel_.prefetch_actor(first_host_ + host);
}

void LookAhead::prefetch_host_parts(std::uint32_t host) const {
  (*hosts_)[host].engine.lookahead().load_deadlines();
  fabric_.prefetch_uplink(host);
}

LookAhead::LookAhead(EventWheel& wheel, const fabric::Network& network, std::uint32_t first_host)
    : wheel_(wheel),
      fabric_(network.ahead()),
      first_host_(first_host),
      deep_(wheel.actors() >= kDeepFrom),
      kinds_(wheel.actors()) {
  for (std::uint32_t actor = 0; actor < wheel.actors(); ++actor) {
    if (actor >= first_host) {
      kinds_[actor] = kHost;
    } else if (fabric_.ends_at_a_switch(actor)) {
      kinds_[actor] = kSwitch;
    } else {
      kinds_[actor] = fabric_.ends_at_a_host(actor) ? kArrival : kOther;
    }
  }
}

void LookAhead::next_batch(Picos now) {
  until_batch_ = kBatch;
  while (passed_ != scouted_ && over_at_[passed_ % kRing] <= now) ++passed_;
  while (scouted_ - passed_ < kAhead && wheel_.scout([&](std::uint32_t actor, Picos until) {
    if (scouted_ - passed_ == kRing) return;  // the slot is too full to be worth it
    over_at_[scouted_++ % kRing] = until;
    Ring& ring = rings_[kinds_[actor]];
    ring[ring.end++].actor = actor;
    fabric_.prefetch_actor(actor);
  })) {
  }
  for (Ring& ring : rings_) {
    for (std::uint32_t i = kStages + 1; i != 0; --i) ring.ends[i] = ring.ends[i - 1];
    ring.ends[0] = ring.end;
  }
  const auto receiver = [this](const Event& e) { return fabric_.host_at(e.actor); };
  const auto host = [this](const Event& e) { return e.actor - first_host_; };
  const auto engine = [this](std::uint32_t number) -> const transport::Engine& {
    return (*hosts_)[number].engine;
  };

  over(kSwitch, 1, [&](Event& e) { fabric_.prefetch_packet(e.actor); });
  over(kSwitch, 2, [&](Event& e) { fabric_.prefetch_next(e.actor, e.found); });
  over(kSwitch, 3, [&](Event& e) { fabric_.prefetch_egress(e.actor, e.found); });
  over(kSwitch, 4, [&](Event& e) { fabric_.prefetch_joined(e.actor, e.found); });

  over(kArrival, 1, [&](Event& e) {
    fabric_.prefetch_packet(e.actor);
    prefetch_host(receiver(e));
  });
  over(kArrival, 2, [&](Event& e) {
    fabric_.prefetch_arrival(e.actor, e.found);
    prefetch_host_parts(receiver(e));
  });
  over(kArrival, 3, [&](Event& e) {
    if (const Packet* packet = fabric_.first_on(e.actor))
      engine(receiver(e)).lookahead().load_flow(packet);
  });
  over(kArrival, 4, [&](Event& e) {
    if (const Packet* packet = fabric_.first_on(e.actor)) {
      engine(receiver(e)).lookahead().load_flow_parts(packet);
    }
  });
  over(kArrival, 5, [&](Event& e) {
    if (const Packet* packet = fabric_.first_on(e.actor)) {
      engine(receiver(e)).lookahead().load_request(packet);
    }
  });

  over(kHost, 1, [&](Event& e) { prefetch_host(host(e)); });
  over(kHost, 2, [&](Event& e) { prefetch_host_parts(host(e)); });
  over(kHost, 3, [&](Event& e) { engine(host(e)).lookahead().load_flow(nullptr); });
  over(kHost, 4, [&](Event& e) { engine(host(e)).lookahead().load_flow_parts(nullptr); });
  over(kHost, 5, [&](Event& e) { engine(host(e)).lookahead().load_request(nullptr); });

  if (!deep_) return;
  for (const Kind kind : {kSwitch, kArrival}) {
    for (std::uint32_t stage = 3; stage <= kStages; ++stage) {
      over(kind, stage, [&](Event& e) { fabric_.prefetch_departure(e.actor, e.found); });
    }
  }
  over(kSwitch, 5, [&](Event& e) { fabric_.prefetch_before(e.actor, e.found); });
}

}  // namespace paceline
