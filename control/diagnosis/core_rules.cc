// Rules about the core and its load: hash collisions, switches that mark wrongly, and two
// conditions that are not faults: an incast, and a core with less capacity than its hosts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "control/diagnosis/robust.h"
#include "control/diagnosis/rules.h"

namespace paceline::diagnosis {

namespace {

const std::string& from_of(const Evidence& e, std::uint32_t directed) {
  const LinkEvidence& link = e.links[directed / 2];
  return directed % 2 == 0 ? link.first : link.second;
}
const std::string& to_of(const Evidence& e, std::uint32_t directed) {
  return from_of(e, directed ^ 1U);
}

// What queue pairs send by a directed link between switches.
struct Carried {
  double bytes = 0;
  std::size_t pairs = 0;
  std::vector<double> by_window;
};

// A switch's links to the tier that they all lead to. A fair hash gives each the same share.
struct Siblings {
  std::vector<std::uint32_t> links;  // directed
  double bytes = 0;
  std::size_t pairs = 0;
};

class HashRule {
 public:
  explicit HashRule(const Evidence& evidence) : e_(evidence) {
    for (std::uint32_t link = 0; link < e_.links.size(); ++link) {
      if (e_.links[link].of_host) continue;
      for (const std::uint32_t directed : {2 * link, 2 * link + 1}) {
        groups_[group_of(directed)].links.push_back(directed);
      }
    }
    for (const PairEvidence& pair : e_.pairs) add(pair);
  }

  void find(Verdicts& found) const {
    struct Best {
      double gain = 0;
      std::uint32_t link = 0;
      double share = 0;
      double full = 0;
    } best;
    for (const auto& [name, group] : groups_) {
      const auto fair = 1.0 / static_cast<double>(group.links.size());
      for (const std::uint32_t link : group.links) {
        const auto at = carried_.find(link);
        if (at == carried_.end() || group.links.size() < 2) continue;
        const double share = at->second.bytes / group.bytes;
        // Whether chance gives so many pairs, and whether they are those with the bytes.
        const double pairs = static_cast<double>(at->second.pairs);
        const double of_pairs = pairs / static_cast<double>(group.pairs);
        const double gain =
            of_pairs < fair ? 0 : static_cast<double>(group.pairs) * surprise(of_pairs, fair);
        const double full = fullness(link, at->second);
        if (share < kMuch * fair || at->second.pairs < kLeastPairs || full < kFull) continue;
        if (gain > best.gain) best = {gain, link, share, full};
      }
    }
    if (best.gain < kLeastGain) return;
    const Siblings& group = groups_.at(group_of(best.link));
    Verdict verdict;
    verdict.cause = Cause::hash_collision;
    verdict.culprit = e_.links[best.link / 2].name;
    verdict.confidence = 1 - std::exp(-best.gain / kLeastGain);
    verdict.evidence = {
        fmt::format("{} of {}'s {} links of that tier carries {:.0f} % of what they carry, in {} "
                    "queue pairs; a fair hash gives each {:.0f} %.",
                    verdict.culprit, from_of(e_, best.link), group.links.size(), 100 * best.share,
                    carried_.at(best.link).pairs, 100.0 / static_cast<double>(group.links.size())),
        fmt::format("It is {:.0f} % full in the busiest fifth of the time.", 100 * best.full)};
    found.push_back(std::move(verdict));
  }

 private:
  static constexpr double kMuch = 1.6;     // times the fair share
  static constexpr double kLeastGain = 9;  // e^9 times as likely as with a fair hash
  static constexpr double kFull = 0.25;
  static constexpr std::size_t kLeastPairs = 6;

  // The switch, and the tier that the link leads to.
  std::string group_of(std::uint32_t directed) const {
    const std::string& to = to_of(e_, directed);
    return from_of(e_, directed) + " " + to.substr(0, to.find_first_of("0123456789"));
  }

  void add(const PairEvidence& pair) {
    double bytes = 0;
    for (const PairWindow& window : pair.windows) bytes += static_cast<double>(window.bytes);
    for (const std::uint32_t directed : pair.way) {
      // Downwards there is no choice of link.
      if (e_.links[directed / 2].of_host || directed % 2 != 0) continue;
      Siblings& group = groups_[group_of(directed)];
      group.bytes += bytes;
      ++group.pairs;
      Carried& carried = carried_[directed];
      carried.bytes += bytes;
      ++carried.pairs;
      carried.by_window.resize(e_.window_ends.size());
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        carried.by_window[w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
  }

  // The divergence of this share from the fair one, in nats for each pair.
  static double surprise(double share, double fair) {
    double out = 0;
    if (share > 0) out += share * std::log(share / fair);
    if (share < 1) out += (1 - share) * std::log((1 - share) / (1 - fair));
    return out;
  }

  double fullness(std::uint32_t link, const Carried& carried) const {
    std::vector<double> shares;
    for (std::size_t w = 0; w < carried.by_window.size(); ++w) {
      const double able = window_us(e_, w) * e_.links[link / 2].rate_bps / 8e6;
      if (carried.by_window[w] > 0 && able > 0) shares.push_back(carried.by_window[w] / able);
    }
    return quantile(shares, 0.8);
  }

  const Evidence& e_;
  std::map<std::string, Siblings> groups_;
  std::map<std::uint32_t, Carried> carried_;
};

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
    queues_.assign(e_.nics.size(), std::vector<double>(e_.window_ends.size()));
    for (const PairEvidence& pair : e_.pairs) {
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        queues_[pair.dst][w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
    for (std::size_t n = 0; n < queues_.size(); ++n) {
      double now = 0;
      for (std::size_t w = 0; w < e_.nics[n].windows.size(); ++w) {
        const NicWindow& window = e_.nics[n].windows[w];
        const bool measured = window.under_way_bytes >= 0;
        const double before = measured && w == 0 ? window.under_way_bytes : now;
        now = measured ? window.under_way_bytes
                       : now + queues_[n][w] - static_cast<double>(window.received_bytes);
        queues_[n][w] = (before + now) / 2;
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

// Bits per second over a window, as a share of a rate.
double share_of(double bytes, double us, double rate_bps) {
  return us <= 0 || rate_bps <= 0 ? 0 : bytes * 8e6 / us / rate_bps;
}

}  // namespace

void find_hash_collision(const Evidence& evidence, Verdicts& found) {
  HashRule(evidence).find(found);
}

void find_wrong_ecn(const Evidence& evidence, const Explained& explained, Verdicts& found) {
  if (!evidence.marks) return;
  EcnRule(evidence, explained).find(found);
}

void find_incast(const Evidence& e, const Explained& explained, Verdicts& found) {
  constexpr std::size_t kLeastSenders = 4;
  constexpr double kFull = 0.7;         // of the NIC's rate
  constexpr double kMoreThanUsual = 4;  // bytes received, over the median NIC's
  std::vector<double> received(e.nics.size());
  std::vector<std::vector<double>> by_window(e.nics.size(),
                                             std::vector<double>(e.window_ends.size()));
  std::vector<std::vector<std::uint32_t>> senders(e.nics.size(),
                                                  std::vector<std::uint32_t>(e.window_ends.size()));
  for (const PairEvidence& pair : e.pairs) {
    for (std::size_t w = 0; w < pair.windows.size(); ++w) {
      const auto bytes = static_cast<double>(pair.windows[w].bytes);
      received[pair.dst] += bytes;
      by_window[pair.dst][w] += bytes;
      senders[pair.dst][w] += bytes > 0 ? 1U : 0U;
    }
  }
  std::vector<double> some = received;
  const double usual = median(some);
  for (std::size_t n = 0; n < e.nics.size(); ++n) {
    if (explained.nics[n] || received[n] == 0 || received[n] < kMoreThanUsual * usual) continue;
    double full = 0, all = 0;
    std::uint32_t most = 0;
    for (std::size_t w = 0; w < e.window_ends.size(); ++w) {
      all += by_window[n][w];
      if (senders[n][w] < kLeastSenders) continue;
      if (share_of(by_window[n][w], window_us(e, w), e.nics[n].rate_bps) < kFull) continue;
      full += by_window[n][w];
      most = std::max(most, senders[n][w]);
    }
    if (full < 0.5 * all) continue;
    Verdict verdict;
    verdict.cause = Cause::incast;
    verdict.culprit = e.nics[n].name;
    verdict.confidence = full / all;
    verdict.evidence = {fmt::format(
        "Up to {} NICs send to {} at the same time; {:.0f} % of what it receives comes while its "
        "link is {:.0f} % full or more.",
        most, verdict.culprit, 100 * full / all, 100 * kFull)};
    found.push_back(std::move(verdict));
  }
}

void find_oversubscription(const Evidence& e, Verdicts& found) {
  constexpr double kFull = 0.6;
  if (e.oversubscription <= 1.05) return;
  // What each switch sends towards other switches, and the capacity for it.
  std::map<std::string, double> capacity;
  std::map<std::string, std::vector<double>> sent;
  for (const LinkEvidence& link : e.links) {
    if (!link.of_host) capacity[link.first] += link.rate_bps;
  }
  for (const PairEvidence& pair : e.pairs) {
    for (const std::uint32_t directed : pair.way) {
      const LinkEvidence& link = e.links[directed / 2];
      if (link.of_host || directed % 2 != 0) continue;
      std::vector<double>& at = sent[link.first];
      at.resize(e.window_ends.size());
      for (std::size_t w = 0; w < pair.windows.size(); ++w) {
        at[w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
  }
  double most = 0;
  std::string where;
  for (const auto& [name, bytes] : sent) {
    std::vector<double> shares;
    for (std::size_t w = 0; w < bytes.size(); ++w) {
      if (bytes[w] > 0) shares.push_back(share_of(bytes[w], window_us(e, w), capacity[name]));
    }
    const double share = median(shares);
    if (share > most) {
      most = share;
      where = name;
    }
  }
  if (most < kFull) return;
  Verdict verdict;
  verdict.cause = Cause::oversubscribed;
  verdict.culprit = where;
  verdict.confidence = std::min(1.0, most);
  verdict.evidence = {
      fmt::format("The links of a leaf to its hosts have {:.1f} times the capacity of its uplinks; "
                  "the uplinks of "
                  "{} are {:.0f} % full at the median.",
                  e.oversubscription, where, 100 * most)};
  found.push_back(std::move(verdict));
}

}  // namespace paceline::diagnosis
