#include "tools/collective/rank/plan/plan_routes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace paceline::rank {

namespace {

// A message that has landed is acknowledged before the receiver has noticed it, so the receiver has
// requests for twice the messages in flight.
constexpr std::uint32_t kReceivesOfOne = 2;

struct Use {
  std::uint64_t messages = 0;
  std::uint8_t service_level = 0;
};

using Uses = std::map<std::pair<std::uint32_t, std::uint32_t>, Use>;  // by peer and lane

void add_routes(const Uses& uses, std::uint32_t rank, bool sends, std::vector<PeerTraffic>& out) {
  for (const auto& [key, use] : uses) {
    const auto [peer, lane] = key;
    const std::uint32_t from = sends ? rank : peer;
    const std::uint32_t to = sends ? peer : rank;
    const std::uint32_t slots = lane == kPooledLane ? kPoolSize : 1;
    const std::uint32_t most = lane == kPooledLane ? 1 : kMostUnderWay;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      PeerTraffic t;
      t.peer = peer;
      t.channel = plan_channel(from, to, lane, slot);
      t.service_level = use.service_level;
      (sends ? t.sent : t.received) = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(use.messages, sends ? most : kReceivesOfOne * most));
      out.push_back(t);
    }
  }
}

}  // namespace

std::vector<PeerTraffic> plan_traffic(const PlanPart& part, std::uint32_t rank) {
  Uses sent;
  Uses received;
  for (const PlanSend& s : part.sends) {
    if (s.computes) continue;
    Use& use = sent[{s.to, s.lane}];
    if (use.messages++ == 0) use.service_level = s.service_level;
  }
  for (const PlanArrival& a : part.arrivals) ++received[{a.from, a.lane}].messages;
  std::vector<PeerTraffic> out;
  add_routes(sent, rank, true, out);
  add_routes(received, rank, false, out);
  return out;
}

}  // namespace paceline::rank
