#include "tools/run/nic_pace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "dataplane/driver/traffic/fabric_ideal.h"
#include "tools/run/medians.h"
#include "tools/workload/background.h"

namespace paceline::tools {

namespace {

using workload::kBackgroundTag;

// Of shorter messages latency decides.
constexpr std::uint64_t kLeastToJudge = 16 * 1024;

class PaceReader {
 public:
  explicit PaceReader(const VirtualWorld& world) : world_(world), records_(world.records()) {}

  std::vector<NicPace> read() const {
    std::vector<NicPace> out;
    const std::uint32_t nics = world_.hosts();
    std::vector<std::vector<std::uint32_t>> sent(nics), received(nics);  // messages
    const FabricIdeal ideal(world_.scenario(), world_.network().spec(),
                            world_.network().topology());
    const MessagePlan& plan = world_.plan();
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      const PlannedMessage& m = plan.messages[id];
      if (m.computes || m.nvlink || m.bytes < kLeastToJudge || m.job == kBackgroundTag) continue;
      sent[m.src].push_back(id);
      received[m.dst].push_back(id);
    }
    std::vector<double> paces(plan.messages.size(), std::numeric_limits<double>::infinity());
    for (std::uint32_t nic = 0; nic < nics; ++nic) {
      lower_paces(sent[nic], ideal, paces);
      lower_paces(received[nic], ideal, paces);
    }
    const auto middle = [&paces](const std::vector<std::uint32_t>& ids) {
      std::vector<double> some;
      for (const std::uint32_t id : ids) some.push_back(paces[id]);
      return median(some);
    };
    for (std::uint32_t nic = 0; nic < nics; ++nic) {
      out.push_back({middle(sent[nic]), middle(received[nic])});
    }
    return out;
  }

 private:
  // Of the messages of a NIC one way: those that follow one another without a pause share it, and
  // until one of them is complete the NIC had all to carry that had begun.
  void lower_paces(std::vector<std::uint32_t>& ids, const FabricIdeal& ideal,
                   std::vector<double>& paces) const {
    std::sort(ids.begin(), ids.end(), [this](std::uint32_t a, std::uint32_t b) {
      return std::pair(records_[a].ready, a) < std::pair(records_[b].ready, b);
    });
    for (std::size_t i = 0, next = 0; i < ids.size(); i = next) {
      const Picos begin = records_[ids[i]].ready;
      Picos end = begin;
      do {
        end = later(end, records_[ids[next]].completed);
      } while (++next < ids.size() && records_[ids[next]].ready < end);
      std::vector<std::uint32_t> by_end(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                        ids.begin() + static_cast<std::ptrdiff_t>(next));
      std::sort(by_end.begin(), by_end.end(), [this](std::uint32_t a, std::uint32_t b) {
        return std::pair(records_[a].completed, a) < std::pair(records_[b].completed, b);
      });
      std::uint64_t begun = 0;  // bytes of those before `i`
      for (const std::uint32_t id : by_end) {
        const Picos until = records_[id].completed;
        for (; i < next && records_[ids[i]].ready < until; ++i) {
          begun += world_.plan().messages[ids[i]].bytes;
        }
        const PlannedMessage& m = world_.plan().messages[id];
        const double pace = static_cast<double>((until - begin).count) /
                            static_cast<double>(ideal.fct(m.src, m.dst, begun).count);
        paces[id] = std::min(paces[id], pace);
      }
    }
  }

  const VirtualWorld& world_;
  const std::vector<MessageRecord>& records_;
};

}  // namespace

std::vector<NicPace> nic_paces(const VirtualWorld& world) { return PaceReader(world).read(); }

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
