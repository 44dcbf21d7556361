// A network that answers in one line instead of a million packets: a response surface over the
// parameters, noise, drift of the load, and what happens beyond a cliff. For tests of the tuner's
// decisions; what congestion control really does is up to the worlds in tests/sim.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/tuner/online/tuner.h"
#include "dataplane/base/numbers/distributions.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tuner::online::test {

inline const cc::AlgorithmInfo& dcqcn() { return *cc::find("dcqcn"); }

inline std::vector<double> paper() {
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  return std::get<std::vector<double>>(cc::resolve_params(dcqcn(), "paper", {}, facts));
}

inline std::size_t param(std::string_view name) {
  return static_cast<std::size_t>(cc::find_param(dcqcn().params, name));
}

class SyntheticPlant {
 public:
  static constexpr std::int64_t kWindow_ns = 10'000'000;

  explicit SyntheticPlant(std::uint64_t seed) : random_(seed, 77) {}

  // J of a parameter set, without noise; 0 for the champion by convention.
  std::function<double(const std::vector<double>&)> response = [](const auto&) { return 0.0; };
  // Makes a breach of a window under these parameters.
  std::function<void(const std::vector<double>&, Window&)> breach = [](const auto&, Window&) {};
  double noise_sd = 0.05;  // of a window's log slowdown; that of a block's difference is less
  double load = 0.6;       // of the line
  double drift = 0;        // of log slowdown, per second
  std::uint32_t senders = 8;
  std::array<std::uint64_t, 3> mix{60, 30, 10};  // messages begun in a window

  // One window under `values`, in force since `order`.
  Window window(const std::vector<double>& values, std::uint64_t order) {
    Window w;
    w.begin_ns = now_ns_;
    w.end_ns = now_ns_ += kWindow_ns;
    w.order = order;
    w.line_bps = 100'000'000'000;
    const double bytes = load * 100e9 / 8 * 0.01;
    w.tx_bytes = w.rx_bytes = static_cast<std::uint64_t>(bytes);
    w.tx_packets = w.rx_packets = w.tx_bytes / 4096;
    w.senders = senders;
    const double total = static_cast<double>(mix[0] + mix[1] + mix[2]);
    // J = -.5 log(small) - .5 log(large): a gain of g takes g off both logs.
    const double seconds = static_cast<double>(now_ns_) * 1e-9;
    const double log_slowdown =
        1.5 - response(values) + drift * seconds + noise_sd * standard_normal(random_);
    for (std::size_t s = 0; s < 3; ++s) {
      auto& m = w.messages[s];
      m.begun = m.completed = mix[s];
      m.begun_bytes = m.completed_bytes =
          static_cast<std::uint64_t>(bytes * static_cast<double>(mix[s]) / total);
      // Spread, so that neighbouring values differ by less than a bucket.
      for (std::uint64_t k = 0; k < mix[s]; ++k) {
        const double at = log_slowdown + 0.2 * standard_normal(random_);
        const double bucket = std::clamp(at / det_log(2) * 8, 0.0, 95.0);
        ++m.slowdown[static_cast<std::size_t>(bucket)];
      }
    }
    breach(values, w);
    return w;
  }
  std::int64_t now_ns() const { return now_ns_; }

 private:
  Random random_;
  std::int64_t now_ns_ = 0;
};

// A tuner at work on a plant: orders come into force after `delay` windows.
class Loop {
 public:
  Loop(SyntheticPlant& plant, const PresetLibrary& presets, TunerOptions options)
      : plant_(plant),
        tuner_(dcqcn(), presets, paper(), std::move(options),
               [this](const JournalEntry& entry) { journal.push_back(entry); }),
        in_force_(paper()) {}

  std::uint32_t delay = 1;
  Surroundings around;
  bool fresh = true;
  std::vector<JournalEntry> journal;
  std::vector<Order> orders;

  void window() {
    for (Pending& p : pending_) --p.left;
    while (!pending_.empty() && pending_.front().left == 0) {
      in_force_ = pending_.front().order.values;
      order_ = pending_.front().order.number;
      role_ = pending_.front().order.role;
      pending_.pop_front();
    }
    Window w = plant_.window(in_force_, order_);
    w.fresh = fresh;
    take(tuner_.step(w, around));
  }
  void windows(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) window();
  }
  // Until so many pairs are finished, or so many windows have passed.
  void pairs(std::uint64_t n, std::uint32_t most_windows = 100'000) {
    while (tuner_.status().pairs < n && most_windows-- > 0) window();
  }
  void take(std::optional<Order> order) {
    if (!order) return;
    orders.push_back(*order);
    pending_.push_back({*order, delay + 1});
  }
  std::size_t count(Event event) const {
    std::size_t n = 0;
    for (const JournalEntry& entry : journal) n += entry.event == event ? 1 : 0;
    return n;
  }
  Tuner& tuner() { return tuner_; }
  const std::vector<double>& in_force() const { return in_force_; }
  Role role() const { return role_; }

 private:
  struct Pending {
    Order order;
    std::uint32_t left;
  };
  SyntheticPlant& plant_;
  Tuner tuner_;
  std::vector<double> in_force_;
  std::uint64_t order_ = 0;
  Role role_ = Role::champion;
  std::deque<Pending> pending_;
};

// Blocks of 10 windows, so that tests are short; the times of constraints as they are.
inline TunerOptions quick(std::uint64_t seed = 1) {
  TunerOptions options;
  options.mode = Mode::automatic;
  options.seed = seed;
  options.block_windows = 10;
  options.wash_windows = 2;
  options.learn_windows = 30;
  options.rest_blocks = 50;
  return options;
}

}  // namespace paceline::tuner::online::test
