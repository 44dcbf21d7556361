#include "tests/diagnose/fault_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/math.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tools {

namespace {

using diagnosis::Cause;

enum class Shape : std::uint8_t { star, leaf_spine, rail };

class WorldDraw {
 public:
  explicit WorldDraw(std::uint64_t seed) : seed_(seed), random_(seed, 0xD1A6) {}

  FaultWorld draw() {
    FaultWorld out;
    draw_truth(out);
    truth_ = out.truth;
    draw_shape();
    const std::string workload = workload_text();
    out.toml = fmt::format(
        "seed = {}\nduration = \"5s\"\n{}{}[cc]\nalgorithm = \"{}\"\n{}", seed_, fabric_text(),
        ports_ > 1 ? "[transport]\nreliability = \"selective\"\n" : "", algorithm(), workload);
    if (out.truth && is_fault(*out.truth)) out.toml += fault_text(out);
    return out;
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_.below(n)); }
  template <std::size_t N>
  std::uint32_t one_of(const std::array<std::uint32_t, N>& values) {
    return values[pick(N)];
  }
  // Uniform in the logarithm.
  double between(double low, double high) {
    return low * det_exp(random_.uniform() * det_log(high / low));
  }

  void draw_truth(FaultWorld& out) {
    const std::uint32_t which = pick(12);
    if (which == 0) return;
    if (which == 1) {
      out.truth = pick(2) == 0 ? Cause::incast : Cause::oversubscribed;
    } else {
      out.truth = static_cast<Cause>(pick(kFaults));
    }
  }

  bool is(Cause cause) const { return truth_ == cause; }

  void draw_shape() {
    shape_ = static_cast<Shape>(pick(3));
    const bool needs_core = is(Cause::bad_path) || is(Cause::oversubscribed) ||
                            is(Cause::hash_collision) || is(Cause::wrong_ecn);
    // Only many connections for each NIC fill queues.
    const std::uint32_t size = pick(is(Cause::wrong_ecn) ? 85 : 100);
    const std::uint32_t nics = size < 60   ? 64U
                               : size < 85 ? 128U
                               : size < 95 ? 256U
                               : size < 99 ? 512U
                                           : 1024U;
    if (needs_core && shape_ == Shape::star) shape_ = Shape::leaf_spine;
    if (nics > 128 && shape_ == Shape::star) shape_ = Shape::leaf_spine;
    if (is(Cause::oversubscribed) || is(Cause::hash_collision)) shape_ = Shape::leaf_spine;
    if (is(Cause::dead_port)) {
      shape_ = Shape::leaf_spine;
      ports_ = 2;
    }
    hosts_ = nics;
    if (shape_ == Shape::leaf_spine) {
      per_leaf_ = nics <= 128 ? one_of(std::array{8U, 16U}) : one_of(std::array{16U, 32U});
      leaves_ = nics / per_leaf_;
      spines_ = one_of(std::array{2U, 4U, 8U});
    } else if (shape_ == Shape::rail) {
      per_leaf_ = 8;
      nics_ = one_of(std::array{2U, 4U});
      leaves_ = nics / per_leaf_ / nics_;  // of each rail
      spines_ = one_of(std::array{2U, 4U});
    }
    gbps_ = nics > 128 || pick(2) == 0 ? 25 : 100;
    narrow_ = is(Cause::oversubscribed);
  }

  std::string fabric_text() const {
    std::string text = fmt::format("[fabric]\nrate = \"{}Gb/s\"\n", gbps_);
    switch (shape_) {
      case Shape::star:
        text += fmt::format("hosts = {}\n", hosts_);
        break;
      case Shape::leaf_spine:
        text += fmt::format(
            "topology = \"leaf_spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n", leaves_,
            spines_, per_leaf_);
        text += fmt::format("oversubscription = {}\n", narrow_ ? 4 : 1);
        break;
      case Shape::rail:
        text += fmt::format(
            "topology = \"rail\"\nnics = {}\nservers = {}\nhosts_per_leaf = {}\nspines = {}\n"
            "cores = {}\nuplink_rate = \"{}Gb/s\"\n",
            nics_, leaves_ * per_leaf_, per_leaf_, spines_, spines_, gbps_ * per_leaf_ / spines_);
        break;
    }
    if (ports_ > 1) text += fmt::format("ports = {}\n", ports_);
    return text;
  }

  std::string_view algorithm() {
    constexpr std::array<std::string_view, 4> kAlgorithms{"dcqcn", "dctcp", "cadence", "swift"};
    constexpr std::array<std::string_view, 2> kOverPlanes{"cadence", "nscc"};
    // Only two of them look at marks.
    return ports_ > 1 ? kOverPlanes[pick(kOverPlanes.size())]
                      : kAlgorithms[pick(is(Cause::wrong_ecn) ? 2 : 4)];
  }

  // Every NIC sends for some milliseconds, in as few packets as possible.
  std::string workload_text() {
    std::string text = "[workload]\n";
    const std::uint32_t kilobytes = kPackets * 4 / hosts_;  // that a NIC sends
    if (is(Cause::incast)) {
      return text + fmt::format(
                        "kind = \"incast\"\nreceiver = {}\nfan_in = {}\n"
                        "message_bytes = \"{}kB\"\n",
                        pick(hosts_), std::min(hosts_ - 1, 8 + pick(16)), 1000 + pick(2000));
    }
    // A job of more than 64 ranks fills no queues.
    const bool job =
        is(Cause::slow_rank) || (pick(2) == 0 && !(is(Cause::wrong_ecn) && hosts_ > 64));
    if (job) return text + job_text(kilobytes);
    const bool few = hosts_ <= 64;
    // Unequal receivers queue, and queues are marked.
    const double skew = is(Cause::wrong_ecn) ? 1.0 : 0.5 * random_.uniform();
    if (few && (is(Cause::oversubscribed) || pick(2) == 0)) {
      return text + fmt::format("kind = \"all_to_all\"\nmessage_bytes = \"{}kB\"\nskew = {:.2f}\n",
                                (kilobytes / 2 + pick(kilobytes)) / hosts_, skew);
    }
    if (is(Cause::wrong_ecn)) {
      text += "incast_load = 0.3\nfan_in = 24\nmessage_bytes = \"200kB\"\n";
    }
    const double load = (is(Cause::oversubscribed) ? 0.6 : 0.4) + 0.3 * random_.uniform();
    return text + fmt::format("kind = \"open_loop\"\nload = {:.2f}\nwindow = \"{:.0f}us\"\n", load,
                              std::clamp(8e3 * kilobytes / (gbps_ * load) / 1e3, 500.0, 3000.0));
  }

  std::string job_text(std::uint32_t kilobytes) {
    constexpr std::array<std::string_view, 3> kLarge{"double_tree", "halving_doubling_near",
                                                     "halving_doubling_far"};
    const bool large = hosts_ > 128;
    const std::uint32_t iterations = large ? 5 + pick(4) : 8 + pick(8);
    std::string_view schedule = "ring";
    // A ring crosses between leaves too rarely to collide.
    if (large || is(Cause::hash_collision)) schedule = kLarge[pick(kLarge.size())];
    const bool exchange = is(Cause::wrong_ecn) ? hosts_ == 64 : hosts_ == 64 && pick(2) == 0;
    const std::uint32_t bytes =
        (kilobytes * 3 / 4 + pick(kilobytes / 2)) / iterations / (exchange ? 1 : 2);
    const std::string operation =
        exchange ? "operation = \"all_to_all\"\n"
                 : fmt::format("operation = \"all_reduce\"\nall_reduce = \"{}\"\n", schedule);
    return fmt::format(
        "kind = \"job\"\n[workload.job]\n{}bytes = \"{}kB\"\niterations = {}\n"
        "compute = \"{}us\"\njitter = {:.3f}\nchunk_bytes = \"256KiB\"\n{}",
        operation, bytes, iterations, 100 + pick(200), 0.01 + 0.04 * random_.uniform(),
        is(Cause::wrong_ecn) ? "skew = 1\n" : "");
  }

  std::string a_nic() { return fmt::format("host{}", pick(hosts_)); }

  std::string fault_text(FaultWorld& out) {
    std::string kind(name_of(*out.truth));
    std::string text;
    std::uint32_t at_us = pick(2) == 0 ? 0 : pick(600);
    switch (*out.truth) {
      case Cause::slow_rank:
        out.culprit = fmt::format("rank{}", pick(hosts_));
        text = fmt::format("severity = {:.2f}\n", between(1.25, 3));
        break;
      case Cause::slow_nic:
        out.culprit = a_nic();
        text = fmt::format("severity = {:.2f}\n", between(1.8, 8));
        break;
      case Cause::pcie_limit:
      case Cause::slow_receiver:
        out.culprit = a_nic();
        text = fmt::format("severity = {:.2f}\nfor = \"30ms\"\n", between(1.8, 5));
        break;
      case Cause::wrong_dscp:
        out.culprit = a_nic();
        text = fmt::format("severity = {}\n", pick(3));
        break;
      case Cause::dead_port:
        out.culprit = fmt::format("host{}.p1", pick(hosts_));
        break;
      case Cause::flapping_port:
        out.culprit = a_nic();
        text = fmt::format("severity = {:.0f}\nfor = \"20ms\"\n", between(500, 3000));
        break;
      case Cause::pfc_storm:
        out.culprit = a_nic();
        text = fmt::format("severity = {:.2f}\nfor = \"{}us\"\n", 0.9 + 0.1 * random_.uniform(),
                           500 + pick(2500));
        break;
      case Cause::lossy_link:
        out.culprit = shape_ != Shape::star && pick(2) == 0 ? core_link() : a_nic();
        text = fmt::format("severity = {:.5f}\n", between(0.001, 0.02));
        break;
      case Cause::bad_path:
        out.culprit = core_link();
        text = fmt::format("severity = {:.1f}\n", between(15, 100));
        break;
      case Cause::hash_collision:
        out.culprit = core_link();
        at_us = 0;
        break;
      case Cause::wrong_ecn:
        out.culprit =
            fmt::format("leaf{}", pick(shape_ == Shape::rail ? leaves_ * nics_ : leaves_));
        kind = pick(2) == 0 ? "ecn_off" : "ecn_wrong";
        at_us = 0;
        if (kind == "ecn_wrong") {
          text = fmt::format("severity = {:.3f}\n",
                             pick(2) == 0 ? between(0.01, 0.05) : between(20, 100));
        }
        break;
      default:
        break;
    }
    out.begin = picos_from_micros(at_us);
    return fmt::format("[[fault]]\nkind = \"{}\"\n{}target = \"{}\"\nat = \"{}us\"\n", kind, text,
                       out.culprit, at_us);
  }

  std::string core_link() {
    const std::uint32_t leaf = pick(shape_ == Shape::rail ? leaves_ * nics_ : leaves_);
    const std::uint32_t group = shape_ == Shape::rail ? leaf / leaves_ : 0;
    return fmt::format("leaf{}-spine{}", leaf, group * spines_ + pick(spines_));
  }

  static constexpr std::uint32_t kFaults = static_cast<std::uint32_t>(Cause::incast);
  static constexpr std::uint32_t kPackets = 110'000;  // of data, about, in a world

  std::uint64_t seed_;
  Random random_;
  std::optional<Cause> truth_;
  Shape shape_ = Shape::star;
  std::uint32_t hosts_ = 0;
  std::uint32_t leaves_ = 1;
  std::uint32_t spines_ = 0;
  std::uint32_t per_leaf_ = 0;
  std::uint32_t nics_ = 1;
  std::uint32_t ports_ = 1;
  std::uint32_t gbps_ = 100;
  bool narrow_ = false;
};

}  // namespace

FaultWorld fault_world(std::uint64_t seed) { return WorldDraw(seed).draw(); }

namespace {

// Whether a pair sent anything in a window that began no earlier than the fault.
bool sent_since(const diagnosis::Evidence& e, const diagnosis::PairEvidence& pair, Picos begin) {
  for (std::size_t w = 0; w < pair.windows.size(); ++w) {
    const Picos from = w == 0 ? Picos{0} : e.window_ends[w - 1];
    if (begin <= from && pair.windows[w].bytes > 0) return true;
  }
  return false;
}

bool any_pauses(const diagnosis::Evidence& e) {
  return std::any_of(e.nics.begin(), e.nics.end(), [](const auto& nic) {
    return std::any_of(nic.windows.begin(), nic.windows.end(),
                       [](const auto& window) { return window.pausing_us > 0; });
  });
}

// How much of a link between switches was used in the window in which most was, upwards.
double busiest_share(const diagnosis::Evidence& e, const std::string& link) {
  std::vector<double> bytes(e.window_ends.size());
  double rate_bps = 0;
  for (const diagnosis::PairEvidence& pair : e.pairs) {
    for (const std::uint32_t directed : pair.way) {
      if (directed % 2 != 0 || e.links[directed / 2].name != link) continue;
      rate_bps = e.links[directed / 2].rate_bps;
      for (std::size_t w = 0; w < bytes.size(); ++w) {
        bytes[w] += static_cast<double>(pair.windows[w].bytes);
      }
    }
  }
  double most = 0;
  for (std::size_t w = 0; w < bytes.size() && rate_bps > 0; ++w) {
    most = std::max(most, bytes[w] * 8e6 / (diagnosis::window_us(e, w) * rate_bps));
  }
  return most;
}

}  // namespace

bool took_effect(const FaultWorld& world, const ObservedRun& observed) {
  constexpr double kLeastCollision = 0.25;  // of the link's rate; who shares less has room
  const diagnosis::Evidence& e = observed.evidence;
  if (!world.truth) return false;
  const auto passes = [&](std::uint32_t directed) {
    return e.links[directed / 2].name == world.culprit;
  };
  const auto any_passes = [&](const std::vector<std::uint32_t>& way) {
    return std::any_of(way.begin(), way.end(), passes);
  };
  switch (*world.truth) {
    case Cause::lossy_link:
      return std::any_of(e.pairs.begin(), e.pairs.end(), [](const auto& pair) {
        return std::any_of(pair.windows.begin(), pair.windows.end(),
                           [](const auto& window) { return window.losses > 0; });
      });
    case Cause::slow_receiver:  // as fast as what came, else
      return any_pauses(e);
    case Cause::slow_nic:
    case Cause::pcie_limit:
    case Cause::wrong_dscp:
      // What a narrow host link takes without a pause comes slowly enough for it.
      if (world.truth == Cause::pcie_limit && any_pauses(e)) return true;
      return std::any_of(e.pairs.begin(), e.pairs.end(), [&](const auto& pair) {
        const bool receives = e.nics[pair.dst].name == world.culprit;
        const bool sends = e.nics[pair.src].name == world.culprit;
        return (sends || (world.truth == Cause::slow_nic && receives)) &&
               sent_since(e, pair, world.begin);
      });
    case Cause::bad_path:
      return std::any_of(e.pairs.begin(), e.pairs.end(), [&](const auto& pair) {
        return (any_passes(pair.way) || any_passes(pair.ack_way)) &&
               sent_since(e, pair, world.begin);
      });
    case Cause::hash_collision:
      return std::count_if(e.pairs.begin(), e.pairs.end(),
                           [&](const auto& pair) {
                             return std::any_of(pair.way.begin(), pair.way.end(),
                                                [&](std::uint32_t directed) {
                                                  return directed % 2 == 0 && passes(directed);
                                                });
                           }) >= 6 &&
             busiest_share(e, world.culprit) >= kLeastCollision;
    case Cause::wrong_ecn: {
      // Late or not at all: a queue passed the middle of the usual thresholds, where switches mark
      // every tenth packet. Early: more than a few were marked.
      const auto at = observed.queues.find(world.culprit);
      const bool early = world.toml.find("severity = 0.0") != std::string::npos;
      return at != observed.queues.end() &&
             (early ? at->second.marked > 100 : at->second.deepest_bytes > 1'000'000);
    }
    default:
      return true;
  }
}

}  // namespace paceline::tools
