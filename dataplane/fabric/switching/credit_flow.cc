#include "dataplane/fabric/switching/credit_flow.h"

namespace paceline::fabric {

namespace {

// A flow-control packet of InfiniBand: 6 bytes (operand, FCTBS, lane, FCCL, checksum) and a symbol
// before and after (section 7.9.4).
constexpr std::uint32_t kUpdateBytes = 8;

}  // namespace

CreditFlow::CreditFlow(const FabricSpec& spec, Wire& wire, PauseTimes& pauses, NetworkStats& stats)
    : book_(spec), wire_(wire), pauses_(pauses), stats_(stats) {
  for (Link& link : wire_.all()) {
    link.impaired = static_cast<std::uint8_t>(link.impaired | Link::kCredits);
    link.notable = static_cast<std::uint8_t>(link.notable | Link::kGrants);
  }
}

void CreditFlow::spend(Link& link, std::uint8_t traffic_class, std::uint32_t bytes) {
  // A class waits for credits from the time at which the wire would be free for it.
  if (!book_.spend(link.id, traffic_class, bytes)) stall(link, traffic_class, link.busy);
}

void CreditFlow::stall(Link& link, std::uint8_t traffic_class, Picos since) {
  link.paused = static_cast<std::uint8_t>(link.paused | 1U << traffic_class);
  pauses_.begin(link.id, traffic_class, since);
}

void CreditFlow::released(Link& back, std::uint8_t traffic_class, std::uint32_t bytes, Picos now) {
  if (const auto limit = book_.release(back.id ^ 1U, traffic_class, bytes)) {
    send(back, traffic_class, *limit, now);
  }
}

// Other packets that could leave at `now` leave behind it.
void CreditFlow::send(Link& back, std::uint8_t traffic_class, std::uint64_t limit, Picos now) {
  if (back.down != 0) return;  // told again when it comes up
  ++stats_.credit_updates;
  wire_.put_control(back, {kRouteCredit, traffic_class, kUpdateBytes, 0, limit}, now);
}

bool CreditFlow::heard(const Link& back, std::uint8_t traffic_class, std::uint64_t limit) {
  return book_.hear(back.id, traffic_class, limit) && (back.paused >> traffic_class & 1U) != 0;
}

void CreditFlow::restart(Link& link, Picos now) {
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    if (!covers(c)) continue;
    book_.restart_near(link.id, c);
    stall(link, c, now);
    send(link, c, book_.restart_far(link.id ^ 1U, c), now);
  }
}

void CreditFlow::take_over(const CreditFlow& other, std::uint32_t link) {
  book_.take_near(other.book_, link);
  book_.take_far(other.book_, link ^ 1U);
}

}  // namespace paceline::fabric
