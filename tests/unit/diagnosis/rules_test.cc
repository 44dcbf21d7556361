// The rules on evidence made by hand: who suffers and who does not decides.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "control/diagnosis/diagnosis.h"
#include "control/diagnosis/robust.h"

namespace paceline::diagnosis {
namespace {

constexpr std::size_t kWindows = 8;

// A fabric of two levels.
struct Shape {
  std::uint32_t leaves = 2;
  std::uint32_t hosts = 2;  // of a leaf
  std::uint32_t spines = 2;
  std::uint32_t nics() const { return leaves * hosts; }
  std::uint32_t uplink(std::uint32_t leaf, std::uint32_t spine) const {
    return nics() + leaf * spines + spine;
  }
};

// Links: the hosts', then leaf0-spine0, leaf0-spine1 and so on. All pairs between leaves, both ways
// over spine (src + dst) % spines.
Evidence quiet(const Shape& shape = {}) {
  Evidence e;
  e.until = picos_from_micros(800);
  for (std::uint32_t a = 0; a < Evidence::kSlices; ++a) {
    for (std::uint32_t b = a + 1; b < Evidence::kSlices; ++b) e.parts.push_back({a, b});
  }
  for (std::size_t w = 1; w <= kWindows; ++w) {
    e.window_ends.push_back(picos_from_micros(static_cast<std::int64_t>(100 * w)));
  }
  for (std::uint32_t n = 0; n < shape.nics(); ++n) {
    const std::string name = "host" + std::to_string(n);
    e.nics.push_back({name, 100e9, std::vector<NicPace>(Evidence::kParts, {1.0, 1.0}), {}});
    e.links.push_back({name, name, "leaf" + std::to_string(n / shape.hosts), 100e9, true});
  }
  for (std::uint32_t leaf = 0; leaf < shape.leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < shape.spines; ++spine) {
      const std::string a = "leaf" + std::to_string(leaf), b = "spine" + std::to_string(spine);
      e.links.push_back({a + "-" + b, a, b, 100e9, false});
    }
  }
  e.slowness.assign(std::size_t{shape.nics()} * shape.nics(), 1.0);
  for (std::uint32_t src = 0; src < shape.nics(); ++src) {
    for (std::uint32_t dst = 0; dst < shape.nics(); ++dst) {
      if (src / shape.hosts == dst / shape.hosts) continue;
      const std::uint32_t spine = (src + dst) % shape.spines;
      const auto way = [&](std::uint32_t from, std::uint32_t to) {
        return std::vector<std::uint32_t>{2 * from, 2 * shape.uplink(from / shape.hosts, spine),
                                          2 * shape.uplink(to / shape.hosts, spine) + 1,
                                          2 * to + 1};
      };
      PairEvidence& pair = e.pairs.emplace_back();
      pair.src = src;
      pair.dst = dst;
      pair.way = way(src, dst);
      pair.ack_way = way(dst, src);
      pair.base_rtt_ns = 8000;
      PairWindow window;
      window.bytes = 300'000;
      window.rtt_ns = 9000;
      pair.windows.assign(kWindows, window);
    }
  }
  return e;
}

void add_ranks(Evidence& e, std::uint32_t ranks, std::uint32_t calls) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    RankEvidence& rank = e.ranks.emplace_back();
    rank.nic = r;
    for (std::uint32_t c = 0; c < calls; ++c) rank.steps.push_back({c, 100.0 + r % 3, 0});
  }
}

bool goes_by(const PairEvidence& pair, std::uint32_t link) {
  for (const std::uint32_t directed : pair.way) {
    if (directed / 2 == link) return true;
  }
  return false;
}

TEST_CASE("nothing is wrong where nobody stands out", "[diagnosis]") {
  Evidence e = quiet();
  CHECK(diagnose(e).empty());
  add_ranks(e, 4, 8);
  CHECK(diagnose(e).empty());
  CHECK(diagnose(Evidence{}).empty());
}

TEST_CASE("a rank that computes long and comes late is slow; one that comes late alone is not",
          "[diagnosis]") {
  Evidence e = quiet();
  add_ranks(e, 4, 8);
  for (RankStep& step : e.ranks[2].steps) step.late_us = 60;
  CHECK(diagnose(e).empty());
  for (RankStep& step : e.ranks[2].steps) step.computing_us = 160;
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::slow_rank);
  CHECK(found[0].culprit == "rank2");
  CHECK(found[0].confidence > 0.9);

  // In a ring its neighbours come late for its sake.
  for (RankStep& step : e.ranks[2].steps) step.late_us = 15;
  CHECK(diagnose(e).size() == 1);
  for (RankStep& step : e.ranks[2].steps) step.late_us = 0;
  CHECK(diagnose(e).empty());
  for (RankStep& step : e.ranks[2].steps) step.late_us = 60;

  // Once or occasionally is not a fault.
  for (std::size_t c = 0; c < 8; ++c) {
    if (c % 4 != 0) e.ranks[2].steps[c] = {static_cast<std::uint32_t>(c), 100, 0};
  }
  CHECK(diagnose(e).empty());
}

template <class Which>
void lengthen(Evidence& e, Which which, std::uint32_t ns) {
  for (PairEvidence& pair : e.pairs) {
    if (!which(pair)) continue;
    for (PairWindow& window : pair.windows) window.rtt_ns += ns;
  }
}

TEST_CASE("a NIC that sends every packet slowly and receives well has too narrow a host link",
          "[diagnosis]") {
  Evidence e = quiet();
  lengthen(
      e, [](const PairEvidence& pair) { return pair.src == 1; }, 330);
  CHECK(diagnose(e).empty());  // its messages are not slow
  for (NicPace& pace : e.nics[1].paces) pace.sent = 2;
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::pcie_limit);
  CHECK(found[0].culprit == "host1");
}

TEST_CASE("long round trips of one NIC alone are not its path's", "[diagnosis]") {
  Evidence e = quiet();
  std::erase_if(e.pairs, [](const PairEvidence& pair) {
    return goes_by(pair, 4) && pair.src != 0 && pair.dst != 0;
  });
  lengthen(
      e, [](const PairEvidence& pair) { return goes_by(pair, 4); }, 20'000);
  for (const Verdict& verdict : diagnose(e)) CHECK(verdict.cause != Cause::bad_path);
}

TEST_CASE("a NIC is slow both ways; one way is its peer or its path", "[diagnosis]") {
  Evidence e = quiet();
  for (NicPace& pace : e.nics[1].paces) pace.sent = 2;
  CHECK(diagnose(e).empty());
  for (NicPace& pace : e.nics[1].paces) pace.received = 2;
  CHECK(diagnose(e).empty());  // a slow NIC takes longer for every packet
  lengthen(
      e, [](const PairEvidence& pair) { return pair.src == 1 || pair.dst == 1; }, 330);
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::slow_nic);
  CHECK(found[0].culprit == "host1");
}

// Every NIC sends so many bytes in a window, in `factor` times what they take at its rate.
void add_sending(Evidence& e, double bytes, double factor) {
  for (NicEvidence& nic : e.nics) {
    nic.windows.resize(kWindows);
    for (NicWindow& window : nic.windows) {
      window.sent_bytes = bytes;
      window.sending_us = factor * bytes * 8e6 / nic.rate_bps;
    }
  }
}
void slow_down(NicEvidence& nic, double factor) {
  for (NicWindow& window : nic.windows) window.sending_us *= factor;
}

TEST_CASE("packets that leave a NIC slowly tell a slow NIC from a narrow host link",
          "[diagnosis]") {
  Evidence e = quiet();
  add_sending(e, 600'000, 1.02);
  slow_down(e.nics[1], 2);
  auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::pcie_limit);
  CHECK(found[0].culprit == "host1");
  // What it receives takes a packet longer, too.
  const auto to_it = [](const PairEvidence& pair) { return pair.dst == 1; };
  lengthen(e, to_it, 330);
  found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::slow_nic);
  CHECK(found[0].culprit == "host1");
  // Nobody pauses for a slow port.
  for (NicWindow& window : e.nics[1].windows) window.pausing_us = 40;
  found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::pcie_limit);
}

TEST_CASE("a NIC that receives nothing and sends slowly is slow", "[diagnosis]") {
  Evidence e = quiet();
  std::erase_if(e.pairs, [](const PairEvidence& pair) { return pair.dst == 1; });
  add_sending(e, 600'000, 1);
  slow_down(e.nics[1], 3);
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::slow_nic);
}

TEST_CASE("packets that leave as fast as elsewhere clear a NIC; chance blames none",
          "[diagnosis]") {
  Evidence e = quiet();
  add_sending(e, 600'000, 1);
  slow_down(e.nics[1], 1.3);  // little
  CHECK(diagnose(e).empty());
  add_sending(e, 600'000, 3);  // all alike
  CHECK(diagnose(e).empty());

  // Long round trips and slow messages are its peers'.
  add_sending(e, 600'000, 1);
  for (NicPace& pace : e.nics[1].paces) pace = {2, 2};
  lengthen(
      e, [](const PairEvidence& pair) { return pair.src == 1 || pair.dst == 1; }, 330);
  CHECK(diagnose(e).empty());

  // Seen sending a few times only: one NIC stands out, two of them do not.
  e = quiet();
  for (PairEvidence& pair : e.pairs) {
    for (PairWindow& window : pair.windows) window.bytes = 20'000;
  }
  add_sending(e, 50'000, 1);
  slow_down(e.nics[1], 2.2);
  CHECK(diagnose(e).size() == 1);
  slow_down(e.nics[2], 2.2);
  CHECK(diagnose(e).empty());
  // Acknowledgements alone need more.
  add_sending(e, 50'000, 1);
  slow_down(e.nics[1], 2.2);
  for (PairEvidence& pair : e.pairs) {
    if (pair.src != 1) continue;
    for (PairWindow& window : pair.windows) window.bytes = 100;
  }
  CHECK(diagnose(e).empty());
}

TEST_CASE("losses meet at one link between switches, or at a host's", "[diagnosis]") {
  for (const std::uint32_t link : {2U, 5U}) {
    Evidence e = quiet();
    CAPTURE(e.links[link].name);
    for (PairEvidence& pair : e.pairs) {
      if (!goes_by(pair, link)) continue;
      for (PairWindow& window : pair.windows) window.losses = 2;
    }
    const auto found = diagnose(e);
    REQUIRE(found.size() == 1);
    CHECK(found[0].cause == Cause::lossy_link);
    if (link == 2) CHECK(found[0].culprit == "host2");
    // With one leaf on either side, both links of the spine have the same pairs.
    if (link == 5) CHECK(found[0].or_else == std::vector<std::string>{"leaf1-spine1"});
  }
}

TEST_CASE("packets that only a timeout took for lost waited", "[diagnosis]") {
  Evidence e = quiet();
  for (PairEvidence& pair : e.pairs) {
    if (!goes_by(pair, 2)) continue;
    for (PairWindow& window : pair.windows) window.losses = window.timeouts = 2;
  }
  CHECK(diagnose(e).empty());
}

TEST_CASE("losses that come with marks are those of full buffers", "[diagnosis]") {
  Evidence e = quiet();
  for (PairEvidence& pair : e.pairs) {
    if (pair.dst != 2) continue;
    for (std::size_t w = 0; w < kWindows; w += 2) {
      pair.windows[w].losses = 5;
      pair.windows[w].marks = 20;
    }
  }
  CHECK(diagnose(e).empty());
}

TEST_CASE("a delay on all pairs of a link, without marks, is a bad path; with marks a queue",
          "[diagnosis]") {
  Evidence e = quiet();
  for (PairEvidence& pair : e.pairs) {
    if (!goes_by(pair, 4)) continue;
    for (std::size_t w = 3; w < kWindows; ++w) pair.windows[w].rtt_ns += 20'000;
  }
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::bad_path);
  CHECK((found[0].culprit == "leaf0-spine0" || found[0].culprit == "leaf1-spine0"));
  REQUIRE(found[0].or_else.size() == 1);
  for (PairEvidence& pair : e.pairs) {
    for (PairWindow& window : pair.windows) window.marks = window.rtt_ns > 9000 ? 10 : 0;
  }
  CHECK(diagnose(e).empty());
}

TEST_CASE(
    "a delay counts twice where data and acknowledgements pass the link, and once where one does",
    "[diagnosis]") {
  Evidence e = quiet();
  // Acknowledgements to host 0 come over the other spine.
  for (PairEvidence& pair : e.pairs) {
    if (pair.src != 0) continue;
    for (std::uint32_t& directed : pair.ack_way) {
      if (directed / 2 >= 4) directed ^= 2U;
    }
  }
  for (PairEvidence& pair : e.pairs) {
    std::uint32_t passes = 0;
    for (const auto* way : {&pair.way, &pair.ack_way}) {
      for (const std::uint32_t directed : *way) passes += directed / 2 == 7;
    }
    for (PairWindow& window : pair.windows) window.rtt_ns += 20'000 * passes;
  }
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::bad_path);
  // With two leaves, both links of the spine have the same pairs.
  CHECK((found[0].culprit == "leaf0-spine1" || found[0].culprit == "leaf1-spine1"));
  CHECK(found[0].or_else.size() == 1);
  CHECK_THAT(found[0].evidence[0], Catch::Contains("20.5 us too long from slice 1 to slice 8"));
}

TEST_CASE("a bad path shows beside queues at receivers, and queues here and there", "[diagnosis]") {
  const Shape shape{8, 4, 4};
  const std::uint32_t bad = shape.uplink(3, 1);
  const auto longer = [&](Evidence& e, auto more_us) {
    for (PairEvidence& pair : e.pairs) {
      for (PairWindow& window : pair.windows) {
        window.rtt_ns += static_cast<std::uint32_t>(1000 * more_us(pair));
      }
    }
  };
  const auto path = [&](const PairEvidence& pair) { return goes_by(pair, bad) ? 40U : 0U; };
  // Each receiver has a queue of its own, up to ten times the delay.
  const auto queue = [](const PairEvidence& pair) { return 12 * pair.dst; };
  // Every tenth pair waits somewhere else.
  const auto other = [](const PairEvidence& pair) {
    const std::uint32_t mixed = 7 * pair.src + 13 * pair.dst;
    return mixed % 10 == 0 ? 30 + mixed % 37 : 0U;
  };
  for (const bool at_receivers : {true, false}) {
    INFO("queues at receivers: " << at_receivers);
    Evidence e = quiet(shape);
    at_receivers ? longer(e, queue) : longer(e, other);
    CHECK(diagnose(e).empty());
    longer(e, path);
    const auto found = diagnose(e);
    REQUIRE(found.size() == 1);
    CHECK(found[0].cause == Cause::bad_path);
    CHECK(found[0].culprit == "leaf3-spine1");
    CHECK(found[0].or_else.empty());
  }
  // As many long round trips, but all to two NICs: their queues as well as the path.
  Evidence e = quiet(shape);
  longer(e, other);
  std::erase_if(e.pairs, [&](const PairEvidence& pair) {
    return goes_by(pair, bad) && pair.dst != 13 && pair.dst != 14;
  });
  longer(e, path);
  CHECK(diagnose(e).empty());
}

TEST_CASE("one pair shows a bad path by a delay that does not change, alone on its link",
          "[diagnosis]") {
  Evidence e = quiet();
  std::erase_if(e.pairs, [](const PairEvidence& pair) {
    return goes_by(pair, 4) && !(pair.src == 0 && pair.dst == 2);
  });
  const auto delay = [&](std::size_t w) -> std::uint32_t& {
    return std::find_if(e.pairs.begin(), e.pairs.end(),
                        [](const PairEvidence& pair) { return goes_by(pair, 4); })
        ->windows[w]
        .rtt_ns;
  };
  for (std::size_t w = 0; w < kWindows; ++w) delay(w) = 49'000;
  auto found = diagnose(e);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].cause == Cause::bad_path);
  delay(3) = 90'000;
  delay(6) = 90'000;
  CHECK(diagnose(e).empty());
  // Others use the link and were not measured.
  for (std::size_t w = 0; w < kWindows; ++w) delay(w) = 49'000;
  PairEvidence other = *std::find_if(e.pairs.begin(), e.pairs.end(),
                                     [](const PairEvidence& pair) { return goes_by(pair, 4); });
  for (PairWindow& window : other.windows) window.rtt_ns = 0;
  e.pairs.push_back(other);
  CHECK(diagnose(e).empty());
}

TEST_CASE("long round trips at the beginning alone are a queue's", "[diagnosis]") {
  Evidence e = quiet();
  for (PairEvidence& pair : e.pairs) {
    if (!goes_by(pair, 4)) continue;
    for (std::size_t w = 0; w < 3; ++w) pair.windows[w].rtt_ns += 20'000;
  }
  CHECK(diagnose(e).empty());
}

TEST_CASE("what a port did explains what its NIC suffers", "[diagnosis]") {
  Evidence e = quiet();
  for (NicPace& pace : e.nics[3].paces) pace = {5, 5};
  for (PairEvidence& pair : e.pairs) {
    if (pair.src != 3 && pair.dst != 3) continue;
    for (PairWindow& window : pair.windows) window.losses = window.timeouts = 3;
  }
  PortEvidence port{"host3", 3, {}};
  for (int i = 0; i < 4; ++i) {
    port.changes.push_back({picos_from_micros(100 * i), false});
    port.changes.push_back({picos_from_micros(100 * i + 10), true});
  }
  e.ports.push_back(port);
  auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::flapping_port);
  e.ports[0].changes.resize(1);
  found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::dead_port);
  CHECK(found[0].culprit == "host3");
}

TEST_CASE("a slow rank is never blamed on the network", "[diagnosis]") {
  Evidence e = quiet();
  add_ranks(e, 4, 8);
  for (RankStep& step : e.ranks[0].steps) step = {step.call, 300, 190};
  for (const Verdict& verdict : diagnose(e)) CHECK(verdict.cause == Cause::slow_rank);
  CHECK(diagnose(e).size() == 1);
}

// Windows 2 to 7 of a NIC with pauses for this share of the time.
void add_pauses(Evidence& e, std::uint32_t nic, double share) {
  e.nics[nic].windows.resize(kWindows);
  for (std::size_t w = 2; w < kWindows; ++w) e.nics[nic].windows[w].pausing_us = 100 * share;
}

TEST_CASE("a NIC that pauses its switch is a slow receiver, behind a PCIe limit or in a storm",
          "[diagnosis]") {
  Evidence e = quiet();
  add_pauses(e, 2, 0.5);
  auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::slow_receiver);
  CHECK(found[0].culprit == "host2");
  for (NicPace& pace : e.nics[2].paces) pace.sent = 2;
  CHECK(diagnose(e).front().cause == Cause::slow_receiver);  // its packets take no longer
  lengthen(
      e, [](const PairEvidence& pair) { return pair.src == 2; }, 330);
  CHECK(diagnose(e).front().cause == Cause::pcie_limit);
  add_pauses(e, 2, 0.95);
  // A sender that waits for it takes packets for lost.
  for (PairEvidence& pair : e.pairs) {
    if (pair.dst == 2) pair.windows[4].losses = pair.windows[4].timeouts = 5;
  }
  found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::pfc_storm);
  add_pauses(e, 2, 0);
  e.nics[2].windows[3].pausing_us = 100;  // once
  for (const Verdict& verdict : diagnose(e)) CHECK(verdict.cause != Cause::pfc_storm);
}

TEST_CASE("a NIC whose data travels in another class stands out, most of them do not",
          "[diagnosis]") {
  Evidence e = quiet();
  for (NicEvidence& nic : e.nics) nic.windows.resize(kWindows);
  e.nics[1].windows[3].reclassed_packets = 7;
  const auto found = diagnose(e);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::wrong_dscp);
  CHECK(found[0].culprit == "host1");
  for (NicEvidence& nic : e.nics) nic.windows[3].reclassed_packets = 7;
  CHECK(diagnose(e).empty());
}

TEST_CASE("connections collide where a full link has far more than a fair hash gives it",
          "[diagnosis]") {
  // 32 pairs from host 0 to host 2, by spine 0, and some by spine 1.
  const auto with = [](std::size_t by_spine_1, std::uint64_t bytes) {
    Evidence e = quiet();
    PairEvidence pair = e.pairs.front();  // 0 to 2
    for (PairWindow& window : pair.windows) window.bytes = bytes;
    for (std::size_t i = 0; i < 32; ++i) {
      if (i == 32 - by_spine_1) {
        pair.way[1] ^= 2U;
        pair.way[2] ^= 2U;
      }
      e.pairs.push_back(pair);
    }
    return e;
  };
  const auto found = diagnose(with(0, 200'000));
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].cause == Cause::hash_collision);
  CHECK(found[0].culprit == "leaf0-spine0");
  const auto collide = [&](std::size_t by_spine_1, std::uint64_t bytes) {
    const auto said = diagnose(with(by_spine_1, bytes));
    return std::any_of(said.begin(), said.end(),
                       [](const Verdict& v) { return v.cause == Cause::hash_collision; });
  };
  // The full link loses packets: that is not a bad optic.
  Evidence loses = with(0, 200'000);
  for (PairEvidence& pair : loses.pairs) {
    if (goes_by(pair, 4)) pair.windows[3].losses = 3;
  }
  const auto lost = diagnose(loses);
  REQUIRE_FALSE(lost.empty());
  CHECK(lost[0].cause == Cause::hash_collision);
  CHECK_FALSE(collide(16, 200'000));
  CHECK_FALSE(collide(11, 200'000));  // chance
  CHECK_FALSE(collide(0, 500));       // it has room for all
}

// What is sent to every NIC: this many bytes are in flight at the end of each window, and these
// shares of the packets arrive marked, `odd` for the NICs from first to last, `usual` for others.
struct Marking {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  double odd = 0;
  double usual = 0;
};
Evidence with_marks(std::uint64_t under_way, const Marking& marking) {
  Evidence e = quiet();
  e.marks = true;
  e.links[3].second = "leaf2";  // of host 3
  for (std::uint32_t n = 0; n < 4; ++n) {
    for (std::size_t w = 0; w < kWindows; ++w) {
      NicWindow& window = e.nics[n].windows.emplace_back();
      window.received_bytes = 600'000 - (w == 0 ? under_way : 0);
      window.received_packets = window.received_bytes / 4096;
      const bool odd = marking.first <= n && n <= marking.last;
      window.marked_packets = static_cast<std::uint64_t>(
          (odd ? marking.odd : marking.usual) * static_cast<double>(window.received_packets));
    }
  }
  return e;
}

TEST_CASE("a switch that marks nothing where its peers mark, or much where they do not, is wrong",
          "[diagnosis]") {
  CHECK(diagnose(with_marks(500'000, {0, 3, 0.3, 0.3})).empty());
  Evidence off = with_marks(500'000, {0, 1, 0, 0.3});
  auto found = diagnose(off);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::wrong_ecn);
  CHECK(found[0].culprit == "leaf0");
  // Bytes in flight are measured: counts at other times do not matter.
  Evidence measured = off;
  for (NicEvidence& nic : measured.nics) {
    for (NicWindow& window : nic.windows) {
      window.under_way_bytes = 500'000;
      window.received_bytes = 600'000;
    }
  }
  found = diagnose(measured);
  REQUIRE(found.size() == 1);
  CHECK(found[0].culprit == "leaf0");
  for (NicEvidence& nic : measured.nics) {
    for (NicWindow& window : nic.windows) window.under_way_bytes = 0;
  }
  CHECK(diagnose(measured).empty());
  off.marks = false;
  CHECK(diagnose(off).empty());
  found = diagnose(with_marks(150'000, {3, 3, 0.8, 0.01}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause == Cause::wrong_ecn);
  CHECK(found[0].culprit == "leaf2");
}

TEST_CASE("marks of other switches, or of nothing under way, blame no switch", "[diagnosis]") {
  // What arrives marked here and there was marked elsewhere.
  CHECK(diagnose(with_marks(150'000, {3, 3, 0.2, 0.01})).empty());
  // Marks in windows without a queue at their ends tell nothing of the last switch.
  CHECK(diagnose(with_marks(0, {3, 3, 0.8, 0.01})).empty());
  CHECK(diagnose(with_marks(0, {0, 1, 0, 0.3})).empty());
}

TEST_CASE("medians are not moved by a few", "[diagnosis]") {
  const Usual usual = usual_of({1, 1.1, 0.9, 1.05, 0.95, 100});
  CHECK(usual.middle == Approx(1.05).margin(0.06));
  CHECK(usual.spread < 0.3);
  CHECK(usual.score(100, 0.01) > 100);
  CHECK(usual_of({2, 2, 2}).score(3, 0.5) == 2);
}

}  // namespace
}  // namespace paceline::diagnosis
