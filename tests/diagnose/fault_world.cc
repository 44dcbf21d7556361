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
    draw_shape(out);
    std::string workload = workload_text(out);
    out.toml = fmt::format("seed = {}\n{}{}[cc]\nalgorithm = \"{}\"\n{}", seed_, fabric_text(),
                           ports_ > 1 ? "[transport]\nreliability = \"selective\"\n" : "",
                           algorithm(), workload);
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
    constexpr std::array kFaults{Cause::slow_rank,     Cause::slow_nic,   Cause::dead_port,
                                 Cause::flapping_port, Cause::lossy_link, Cause::bad_path};
    const std::uint32_t which = pick(7);
    if (which == 0) return;
    if (which == 1) {
      out.truth = pick(2) == 0 ? Cause::incast : Cause::oversubscribed;
    } else {
      out.truth = kFaults[pick(kFaults.size())];
    }
  }

  bool is(const FaultWorld& world, Cause cause) const { return world.truth == cause; }

  void draw_shape(const FaultWorld& out) {
    shape_ = static_cast<Shape>(pick(3));
    const bool needs_core = is(out, Cause::bad_path) || is(out, Cause::oversubscribed);
    if (needs_core && shape_ == Shape::star) shape_ = Shape::leaf_spine;
    if (is(out, Cause::oversubscribed)) shape_ = Shape::leaf_spine;
    if (is(out, Cause::dead_port)) {
      shape_ = Shape::leaf_spine;
      ports_ = 2;
    }
    if (shape_ == Shape::star) {
      hosts_ = one_of(std::array{16U, 24U, 32U});
    } else if (shape_ == Shape::leaf_spine) {
      leaves_ = one_of(std::array{2U, 4U, 8U});
      per_leaf_ = one_of(std::array{4U, 8U});
      leaves_ = std::max(leaves_, 16 / per_leaf_);
      spines_ = one_of(std::array{2U, 4U});
      hosts_ = leaves_ * per_leaf_;
    } else {
      per_leaf_ = one_of(std::array{4U, 8U});
      leaves_ = 2;  // of each rail
      spines_ = 2;
      nics_ = one_of(std::array{2U, 4U});
      hosts_ = nics_ * leaves_ * per_leaf_;
    }
    narrow_ = is(out, Cause::oversubscribed);
  }

  std::string fabric_text() const {
    std::string text = "[fabric]\nrate = \"100Gb/s\"\n";
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
            nics_, leaves_ * per_leaf_, per_leaf_, spines_, spines_, 100 * per_leaf_ / spines_);
        break;
    }
    if (ports_ > 1) text += fmt::format("ports = {}\n", ports_);
    return text;
  }

  std::string_view algorithm() {
    constexpr std::array<std::string_view, 4> kAlgorithms{"dcqcn", "cadence", "swift", "dctcp"};
    constexpr std::array<std::string_view, 2> kOverPlanes{"cadence", "nscc"};
    return ports_ > 1 ? kOverPlanes[pick(kOverPlanes.size())] : kAlgorithms[pick(4)];
  }

  // Every NIC sends for some milliseconds, in as few packets as possible.
  std::string workload_text(const FaultWorld& out) {
    std::string text = "[workload]\n";
    if (is(out, Cause::incast)) {
      return text + fmt::format(
                        "kind = \"incast\"\nreceiver = {}\nfan_in = {}\n"
                        "message_bytes = \"{}kB\"\n",
                        pick(hosts_), std::min(hosts_ - 1, 8 + pick(16)), 1000 + pick(2000));
    }
    const bool job = is(out, Cause::slow_rank) || pick(2) == 0;
    if (job) {
      const bool ring = pick(2) == 0;
      iterations_ = 8 + pick(8);
      return text + fmt::format(
                        "kind = \"job\"\n[workload.job]\noperation = \"{}\"\n"
                        "bytes = \"{}kB\"\niterations = {}\ncompute = \"{}us\"\n"
                        "jitter = {:.3f}\nchunk_bytes = \"256KiB\"\n",
                        ring ? "all_reduce" : "all_to_all", 2000 + pick(3000), iterations_,
                        100 + pick(200), 0.01 + 0.04 * random_.uniform());
    }
    const std::uint32_t kind = is(out, Cause::oversubscribed) ? 0 : pick(2);
    if (kind == 0) {
      return text + fmt::format("kind = \"all_to_all\"\nmessage_bytes = \"{}kB\"\nskew = {:.2f}\n",
                                (12'000 + pick(12'000)) / hosts_, 0.5 * random_.uniform());
    }
    return text + fmt::format("kind = \"open_loop\"\nload = {:.2f}\nwindow = \"2ms\"\n",
                              0.4 + 0.3 * random_.uniform());
  }

  std::string fault_text(FaultWorld& out) {
    std::string text = fmt::format("[[fault]]\nkind = \"{}\"\n", name_of(*out.truth));
    const std::uint32_t at_us = pick(2) == 0 ? 0 : pick(600);
    switch (*out.truth) {
      case Cause::slow_rank:
        out.culprit = fmt::format("rank{}", pick(hosts_));
        text += fmt::format("severity = {:.2f}\n", between(1.25, 3));
        break;
      case Cause::slow_nic:
        out.culprit = fmt::format("host{}", pick(hosts_));
        text += fmt::format("severity = {:.2f}\n", between(1.8, 8));
        break;
      case Cause::dead_port:
        out.culprit = fmt::format("host{}.p1", pick(hosts_));
        break;
      case Cause::flapping_port:
        out.culprit = fmt::format("host{}", pick(hosts_));
        text += fmt::format("severity = {:.0f}\nfor = \"20ms\"\n", between(500, 3000));
        break;
      case Cause::lossy_link:
        out.culprit = shape_ != Shape::star && pick(2) == 0 ? core_link()
                                                            : fmt::format("host{}", pick(hosts_));
        text += fmt::format("severity = {:.5f}\n", between(0.001, 0.02));
        break;
      case Cause::bad_path:
        out.culprit = core_link();
        text += fmt::format("severity = {:.1f}\n", between(15, 100));
        break;
      default:
        break;
    }
    return text + fmt::format("target = \"{}\"\nat = \"{}us\"\n", out.culprit, at_us);
  }

  std::string core_link() {
    const std::uint32_t leaf = pick(shape_ == Shape::rail ? leaves_ * nics_ : leaves_);
    const std::uint32_t group = shape_ == Shape::rail ? leaf / leaves_ : 0;
    return fmt::format("leaf{}-spine{}", leaf, group * spines_ + pick(spines_));
  }

  std::uint64_t seed_;
  Random random_;
  Shape shape_ = Shape::star;
  std::uint32_t hosts_ = 0;
  std::uint32_t leaves_ = 1;
  std::uint32_t spines_ = 0;
  std::uint32_t per_leaf_ = 0;
  std::uint32_t nics_ = 1;
  std::uint32_t ports_ = 1;
  std::uint32_t iterations_ = 0;
  bool narrow_ = false;
};

}  // namespace

FaultWorld fault_world(std::uint64_t seed) { return WorldDraw(seed).draw(); }

bool took_effect(const FaultWorld& world, const ObservedRun& observed) {
  const diagnosis::Evidence& e = observed.evidence;
  if (world.truth == Cause::lossy_link) {
    std::uint64_t losses = 0;
    for (const auto& pair : e.pairs) {
      for (const auto& window : pair.windows) losses += window.losses;
    }
    return losses > 0;
  }
  if (world.truth == Cause::slow_nic) {
    bool used = false;
    for (const auto& pair : e.pairs) {
      used =
          used || e.nics[pair.src].name == world.culprit || e.nics[pair.dst].name == world.culprit;
    }
    return used;
  }
  if (world.truth == Cause::bad_path) {
    return std::any_of(e.pairs.begin(), e.pairs.end(), [&](const auto& pair) {
      const auto by_link = [&](std::uint32_t directed) {
        return e.links[directed / 2].name == world.culprit;
      };
      return std::any_of(pair.way.begin(), pair.way.end(), by_link) ||
             std::any_of(pair.ack_way.begin(), pair.ack_way.end(), by_link);
    });
  }
  return true;
}

}  // namespace paceline::tools
