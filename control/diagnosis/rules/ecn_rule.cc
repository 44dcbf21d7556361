// Switches that mark too seldom or too often.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules/nic_bytes.h"
#include "control/diagnosis/rules/rules.h"

namespace paceline::diagnosis {

namespace {

// Packets that arrived marked, by the number of bytes in flight.
struct MarkTable {
  // Bytes. Finer where switches usually begin to mark.
  static constexpr std::array<double, 10> kFrom{0,       25'000,  50'000,    100'000,   200'000,
                                                400'000, 800'000, 1'200'000, 1'800'000, 3'000'000};
  std::array<double, kFrom.size()> packets{};
  std::array<double, kFrom.size()> marked{};
  std::array<double, kFrom.size()> windows{};  // of NICs
  std::array<double, kFrom.size()> many{};     // of these, with kMany or more of the packets marked
  static constexpr double kMany = 0.3;

  static std::size_t place(double bytes) {
    const auto above = std::upper_bound(kFrom.begin() + 1, kFrom.end(), bytes);
    return static_cast<std::size_t>(above - kFrom.begin()) - 1;
  }
  void add(double bytes, const NicWindow& window) {
    const std::size_t at = place(bytes);
    packets[at] += static_cast<double>(window.received_packets);
    marked[at] += static_cast<double>(window.marked_packets);
    windows[at] += 1;
    const auto received = static_cast<double>(window.received_packets);
    if (static_cast<double>(window.marked_packets) >= kMany * received) ++many[at];
  }
};

// Marks of received packets are compared by the switch in front of the NIC. Bytes in flight to a
// NIC are mostly in its queue there.
class EcnRule {
 public:
  explicit EcnRule(const Evidence& evidence, const Explained& explained) : e_(evidence) {
    for (const LinkEvidence& link : e_.links) {
      if (link.of_host) leaf_of_[link.first] = link.second;
    }
    read_queues();
    for (std::size_t n = 0; n < e_.nics.size(); ++n) {
      const auto leaf = leaf_of_.find(e_.nics[n].name);
      if (explained.nics[n] || leaf == leaf_of_.end()) continue;
      MarkTable& table = tables_[leaf->second];
      for (std::size_t w = 0; w < e_.nics[n].windows.size(); ++w) {
        if (e_.nics[n].windows[w].received_packets == 0) continue;
        table.add(queues_[n][w], e_.nics[n].windows[w]);
      }
    }
  }

  void find(Verdicts& found) const {
    std::vector<Judged> all;
    for (const auto& [leaf, table] : tables_) all.push_back(judge(leaf, {}));
    std::stable_sort(all.begin(), all.end(),
                     [](const Judged& a, const Judged& b) { return a.oddness() > b.oddness(); });
    const auto odd = std::find_if(all.begin(), all.end(), [this](const Judged& one) {
      return one.oddness() >= kOdd && others_agree(one.leaf);
    });
    if (odd == all.end()) return;
    Verdict verdict;
    verdict.cause = Cause::wrong_ecn;
    verdict.culprit = odd->leaf;
    verdict.confidence = 1 - 1 / (1 + odd->oddness());
    verdict.evidence = {fmt::format(
        "Of {:.0f} packets for the NICs of {}, {:.0f} arrived marked; with as much under way "
        "behind other switches it would be {:.0f}.",
        odd->decisive().packets, odd->leaf, odd->decisive().marked, odd->decisive().expected)};
    found.push_back(std::move(verdict));
  }

 private:
  static constexpr double kLeastMarked = 60;  // packets
  static constexpr double kLeastWindows = 4;
  static constexpr double kLeastShort = 8;  // windows
  static constexpr double kMuch = 3;        // times as often, or as seldom
  static constexpr double kOdd = 1;
  // Bytes. Below the first bound, windows tell nothing about the queue between their ends. A switch
  // that marks too early marks many packets in this share of the windows between the two bounds.
  static constexpr double kShort = 50'000;
  static constexpr double kMiddle = 400'000;
  static constexpr double kMostWindows = 0.5;

  // Packets that arrived from queues of certain lengths.
  struct Arrived {
    double packets = 0;
    double marked = 0;
    double expected = 0;  // marked, were it marked as at the others
    double windows = 0;
    double many = 0;
    void add(const MarkTable& table, std::size_t place, double share) {
      packets += table.packets[place];
      marked += table.marked[place];
      expected += share * table.packets[place];
      windows += table.windows[place];
      many += table.many[place];
    }
  };
  struct Judged {
    std::string leaf;
    Arrived of_short;
    Arrived of_long;
    // 1: just enough for a verdict.
    double seldom() const {
      if (of_long.windows < kLeastWindows || of_long.expected < kLeastMarked) return 0;
      return of_long.expected / (kMuch * std::max(of_long.marked, 1.0));
    }
    double often() const {
      if (of_short.windows < kLeastShort || of_short.marked < kLeastMarked ||
          of_short.many < kMostWindows * of_short.windows) {
        return 0;
      }
      return of_short.marked / (kMuch * (of_short.expected + 5));
    }
    double oddness() const { return std::max(seldom(), often()); }
    const Arrived& decisive() const { return seldom() < often() ? of_short : of_long; }
  };

  // Bytes sent to each NIC that have not arrived, the average of a window's begin and end.
  void read_queues() {
    const NicBytes bytes(e_);
    for (std::size_t n = 0; n < e_.nics.size(); ++n) {
      std::vector<double>& queue = queues_.emplace_back(bytes.received(n));
      double now = 0;
      for (std::size_t w = 0; w < e_.nics[n].windows.size(); ++w) {
        const NicWindow& window = e_.nics[n].windows[w];
        const bool measured = window.under_way_bytes >= 0;
        const double before = measured && w == 0 ? window.under_way_bytes : now;
        now = measured ? window.under_way_bytes
                       : now + queue[w] - static_cast<double>(window.received_bytes);
        queue[w] = (before + now) / 2;
      }
    }
  }

  // The packets that would arrive marked behind this switch if it marked as the others do, without
  // `odd`.
  Judged judge(const std::string& leaf, const std::string& odd) const {
    constexpr double kEnough = 2;  // windows of others to know their share
    const MarkTable& own = tables_.at(leaf);
    Judged out;
    out.leaf = leaf;
    double share = 0;  // if the others have too few windows, the share of shorter queues
    for (std::size_t i = 0; i < own.packets.size(); ++i) {
      std::vector<Weighted> shares;
      double windows = 0;
      for (const auto& [other, table] : tables_) {
        if (other == leaf || other == odd || table.packets[i] == 0) continue;
        shares.push_back({table.marked[i] / table.packets[i], table.packets[i]});
        windows += table.windows[i];
      }
      if (windows >= kEnough && shares.size() >= 2) share = weighted_median(shares);
      const double from = MarkTable::kFrom[i];
      if (kShort <= from && from < kMiddle) out.of_short.add(own, i, share);
      // The last bin is left out: any number of the bytes of such long queues may be elsewhere.
      if (kMiddle <= from && i + 1 < own.packets.size()) out.of_long.add(own, i, share);
    }
    return out;
  }

  // Without the odd one, most others are like their peers.
  bool others_agree(const std::string& odd) const {
    std::size_t others = 0, agree = 0;
    for (const auto& [leaf, table] : tables_) {
      if (leaf == odd) continue;
      ++others;
      agree += judge(leaf, odd).oddness() < kOdd ? 1U : 0U;
    }
    return others >= 2 && 2 * agree > others;
  }

  const Evidence& e_;
  std::map<std::string, std::string> leaf_of_;  // by NIC
  std::vector<std::vector<double>> queues_;     // bytes, by NIC and window
  std::map<std::string, MarkTable> tables_;     // by leaf
};

}  // namespace

void find_wrong_ecn(const Evidence& evidence, const Explained& explained, Verdicts& found) {
  if (!evidence.marks) return;
  EcnRule(evidence, explained).find(found);
}

}  // namespace paceline::diagnosis
