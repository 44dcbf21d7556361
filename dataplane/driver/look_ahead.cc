#include "dataplane/driver/look_ahead.h"

#include "dataplane/base/prefetch.h"

namespace paceline {

namespace {

void prefetch_host(const WorldHost& host) {
  host.engine.prefetch_state();
  prefetch_line(&host.app);
}

}  // namespace

LookAhead::LookAhead(EventWheel& wheel, const fabric::Network& network, std::uint32_t first_host)
    : wheel_(wheel), network_(network), first_host_(first_host), kinds_(wheel.actors()) {
  for (std::uint32_t actor = 0; actor < wheel.actors(); ++actor) {
    if (actor >= first_host) {
      kinds_[actor] = kHost;
    } else if (network.ends_at_a_switch(actor)) {
      kinds_[actor] = kSwitch;
    } else {
      kinds_[actor] = network.ends_at_a_host(actor) ? kArrival : kOther;
    }
  }
}

void LookAhead::next_batch(Picos now) {
  until_batch_ = kBatch;
  while (passed_ != scouted_ && over_at_[passed_ % kRing] <= now) ++passed_;
  while (scouted_ - passed_ < kAhead && wheel_.scout([&](std::uint32_t actor, Picos until) {
    if (scouted_ - passed_ == kRing) return;  // a slot fuller than is worth while
    over_at_[scouted_++ % kRing] = until;
    Ring& ring = rings_[kinds_[actor]];
    ring[ring.end++] = {actor, fabric::Network::kNowhere};
    network_.prefetch_actor(actor);
  })) {
  }
  for (Ring& ring : rings_) {
    for (std::uint32_t i = kStages + 1; i != 0; --i) ring.ends[i] = ring.ends[i - 1];
    ring.ends[0] = ring.end;
  }
  const auto host_of = [this](const Event& e) -> const WorldHost& {
    return (*hosts_)[network_.host_at(e.actor)];
  };
  const auto host = [this](const Event& e) -> const WorldHost& {
    return (*hosts_)[e.actor - first_host_];
  };

  over(kSwitch, 1, [&](Event& e) { network_.prefetch_packet(e.actor); });
  over(kSwitch, 2, [&](Event& e) { e.next = network_.prefetch_next(e.actor); });
  over(kSwitch, 3, [&](Event& e) { network_.prefetch_egress(e.actor, e.next); });
  over(kSwitch, 4, [&](Event& e) { network_.prefetch_joined(e.actor, e.next); });

  over(kArrival, 1, [&](Event& e) {
    network_.prefetch_packet(e.actor);
    prefetch_host(host_of(e));
  });
  over(kArrival, 2, [&](Event& e) { network_.prefetch_arrival(e.actor); });
  over(kArrival, 3, [&](Event& e) {
    if (const Packet* packet = network_.first_on(e.actor)) host_of(e).engine.prefetch_flow(packet);
  });
  over(kArrival, 4, [&](Event& e) {
    if (const Packet* packet = network_.first_on(e.actor)) {
      host_of(e).engine.prefetch_flow_parts(packet);
    }
  });

  over(kHost, 1, [&](Event& e) { prefetch_host(host(e)); });
  over(kHost, 3, [&](Event& e) { host(e).engine.prefetch_flow(nullptr); });
  over(kHost, 4, [&](Event& e) { host(e).engine.prefetch_flow_parts(nullptr); });
}

}  // namespace paceline
