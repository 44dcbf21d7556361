#include "tools/run/nic_pace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "control/diagnosis/robust.h"
#include "tools/workload/background.h"

namespace paceline::tools {

namespace {

using diagnosis::divide_by_median;
using diagnosis::largest_of;
using diagnosis::median;
using workload::kBackgroundTag;

// Latency decides how long shorter messages take.
constexpr std::uint64_t kLeastToJudge = 16 * 1024;

}  // namespace

NicPaces::NicPaces(const VirtualWorld& world)
    : world_(world), sent_(world.hosts()), received_(world.hosts()) {
  const MessagePlan& plan = world.plan();
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (m.computes || m.nvlink || m.bytes < kLeastToJudge || m.job == kBackgroundTag) continue;
    if (world.records()[id].completed.count < 0) continue;
    sent_[m.src].push_back(id);
    received_[m.dst].push_back(id);
  }
  paces_.assign(plan.messages.size(), std::numeric_limits<double>::infinity());
  const FabricIdeal ideal(world.scenario(), world.network().spec(), world.network().topology());
  for (std::uint32_t nic = 0; nic < world.hosts(); ++nic) {
    lower_paces(sent_[nic], ideal);
    lower_paces(received_[nic], ideal);
  }
}

std::vector<NicPace> NicPaces::between(Picos after, Picos until, PaceWeight weight) const {
  const auto middle = [&](const std::vector<std::uint32_t>& ids) {
    std::vector<diagnosis::Weighted> some;
    for (const std::uint32_t id : ids) {
      const Picos at = world_.records()[id].completed;
      if (at <= after || until < at) continue;
      const auto bytes = static_cast<double>(world_.plan().messages[id].bytes);
      some.push_back({paces_[id], weight == PaceWeight::bytes ? bytes : 1});
    }
    return diagnosis::weighted_median(some);
  };
  std::vector<NicPace> out;
  for (std::size_t nic = 0; nic < sent_.size(); ++nic) {
    out.push_back({middle(sent_[nic]), middle(received_[nic])});
  }
  return out;
}

std::vector<double> NicPaces::by_pair() const {
  const std::size_t nics = sent_.size();
  std::vector<std::vector<double>> all(nics * nics);
  for (std::size_t nic = 0; nic < nics; ++nic) {
    for (const std::uint32_t id : sent_[nic]) {
      all[nic * nics + world_.plan().messages[id].dst].push_back(paces_[id]);
    }
  }
  std::vector<double> out;
  for (std::vector<double>& some : all) out.push_back(median(some));
  return out;
}

// `ids` are the messages of a NIC in one direction. Messages that follow one another without a
// pause share the NIC: until one of them is complete, it had to carry all that had begun.
void NicPaces::lower_paces(std::vector<std::uint32_t>& ids, const FabricIdeal& ideal) {
  const std::vector<MessageRecord>& records = world_.records();
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(records[a].ready, a) < std::pair(records[b].ready, b);
  });
  for (std::size_t i = 0, next = 0; i < ids.size(); i = next) {
    const Picos begin = records[ids[i]].ready;
    Picos end = begin;
    do {
      end = later(end, records[ids[next]].completed);
    } while (++next < ids.size() && records[ids[next]].ready < end);
    std::vector<std::uint32_t> by_end(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                      ids.begin() + static_cast<std::ptrdiff_t>(next));
    std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(records[a].completed, a) < std::pair(records[b].completed, b);
    });
    std::uint64_t begun = 0;  // bytes of the messages before `i`
    for (const std::uint32_t id : by_end) {
      const Picos until = records[id].completed;
      for (; i < next && records[ids[i]].ready < until; ++i) {
        begun += world_.plan().messages[ids[i]].bytes;
      }
      const PlannedMessage& m = world_.plan().messages[id];
      const double pace = static_cast<double>((until - begin).count) /
                          static_cast<double>(ideal.fct(m.src, m.dst, begun).count);
      paces_[id] = std::min(paces_[id], pace);
    }
  }
}

void find_slow_nic(const std::vector<NicPace>& nics, std::vector<Straggler>& out) {
  constexpr double kMuch = 1.5;
  constexpr double kAlike = 0.9;
  std::vector<double> sent, received, both;
  for (const NicPace& nic : nics) {
    sent.push_back(nic.sent);
    received.push_back(nic.received);
  }
  divide_by_median(sent);
  divide_by_median(received);
  for (std::size_t i = 0; i < sent.size(); ++i) both.push_back(sent[i] * received[i]);
  if (both.empty()) return;
  Straggler slow;
  slow.kind = Straggler::Kind::nic;
  slow.number = largest_of(both);
  slow.pace = {sent[slow.number], received[slow.number]};
  if (std::max(slow.pace.sent, slow.pace.received) < kMuch) return;
  const double most = std::exchange(both[slow.number], 0);
  const std::uint32_t next = largest_of(both);
  if (both[next] >= kAlike * most) slow.or_else = next;
  out.push_back(slow);
}

}  // namespace paceline::tools
