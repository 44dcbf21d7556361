#include "control/daemon/telemetry/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace paceline::daemon {

namespace {

using telemetry::QueuePairRecord;

static_assert(std::tuple_size_v<decltype(QueuePairRecord::limiter_ns)> == cc::kLimiters);

// Less than this share of the time is not worth a sentence.
constexpr double kWorthSaying = 0.02;
// A round trip this much longer than the shortest is queueing rather than noise.
constexpr double kQueueingRatio = 1.5;
constexpr std::uint64_t kNoWindow = ~std::uint64_t{0};

std::uint64_t grown(std::uint64_t before, std::uint64_t after) {
  return after >= before ? after - before : 0;
}

std::string rate_text(double bps) {
  if (bps >= 1e9) return fmt::format("{:.2f} Gb/s", bps / 1e9);
  if (bps >= 1e6) return fmt::format("{:.1f} Mb/s", bps / 1e6);
  return fmt::format("{:.1f} kb/s", bps / 1e3);
}

std::string time_text(double ns) {
  if (ns >= 1e6) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.1f} us", ns / 1e3);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} bytes", bytes);
}

struct Span {
  const QueuePairRecord& first;
  const QueuePairRecord& last;
  double seconds = 0;
  std::uint64_t link_bps = 0;
  double bps = 0;
  double decided_bps = 0;  // mean of the decisions seen
  double backlogged = 0;   // share of looks with something posted and not sent
  double on_fallback = 0;  // share of looks
  double srtt_ns = 0;      // mean of those measured; 0: none
  double min_rtt_ns = 0;
  std::uint64_t grown_of(std::uint64_t QueuePairRecord::*field) const {
    return grown(first.*field, last.*field);
  }
};

std::string limit_sentence(const Span& s, cc::Limiter limiter, double share) {
  const std::string percent = fmt::format("{:.0f} % of the time", share * 100);
  switch (limiter) {
    case cc::Limiter::application:
      return fmt::format(
          "{} the application had posted nothing to send ({}): post larger messages, or more of "
          "them at once.",
          percent,
          s.backlogged == 0
              ? "no backlog was ever seen"
              : fmt::format("a backlog in {:.0f} % of the looks", s.backlogged * 100));
    case cc::Limiter::grant:
      return fmt::format(
          "{} the receiver's grant bounded it, at {} on average: the port of the receiver is "
          "shared "
          "with others.",
          percent, rate_text(s.decided_bps));
    case cc::Limiter::uplink:
      return fmt::format(
          "{} it had its share of this NIC's own uplink, {} on average{}: other connections of "
          "this "
          "NIC send as well.",
          percent, rate_text(s.decided_bps),
          s.link_bps == 0 ? std::string()
                          : fmt::format(" of {}", rate_text(static_cast<double>(s.link_bps))));
    case cc::Limiter::path:
      return fmt::format(
          "{} congestion on the path bounded it: {} held it to {} on average ({} congestion "
          "notifications).",
          percent, s.last.algorithm.data(), rate_text(s.decided_bps),
          s.grown_of(&QueuePairRecord::cnps_received));
    case cc::Limiter::window:
      return fmt::format(
          "{} the window bounded it: {} allowed in flight, {} in flight at the last look.", percent,
          s.last.window_bytes == kNoWindow ? std::string("no more")
                                           : bytes_text(static_cast<double>(s.last.window_bytes)),
          bytes_text(static_cast<double>(s.last.inflight_bytes)));
    case cc::Limiter::credit:
      return fmt::format(
          "{} it waited for credits of the far side ({} times receiver not ready): its program "
          "posts "
          "receives too late or too few.",
          percent, s.grown_of(&QueuePairRecord::rnr_received));
    case cc::Limiter::port:
      return fmt::format("{} the port itself was the bound{}: line rate, or a pause of the switch.",
                         percent,
                         s.link_bps == 0 ? std::string()
                                         : fmt::format(" ({} of {})", rate_text(s.bps),
                                                       rate_text(static_cast<double>(s.link_bps))));
  }
  return {};
}

void add_troubles(const Span& s, std::vector<Finding>& out) {
  const auto count = [&](std::uint64_t QueuePairRecord::*field) { return s.grown_of(field); };
  if (const auto n = count(&QueuePairRecord::timeouts); n > 0) {
    out.push_back(
        {"timeouts", 0,
         fmt::format("{} retransmission time-out{}: whole flights, or the last packets of "
                     "a message, were lost; each costs milliseconds.",
                     n, n == 1 ? "" : "s")});
  }
  if (const auto n = count(&QueuePairRecord::rnr_received); n > 0) {
    out.push_back({"receiver_not_ready", 0,
                   fmt::format("The receiver was not ready {} time{}: no receive was posted when a "
                               "message came.",
                               n, n == 1 ? "" : "s")});
  }
  if (const auto n = count(&QueuePairRecord::retransmitted_packets); n > 0) {
    out.push_back(
        {"retransmissions", 0,
         fmt::format("{} packet{} sent again ({:.1f} a second; {} NAKs): packets are lost or "
                     "reordered on the way.",
                     n, n == 1 ? "" : "s", static_cast<double>(n) / s.seconds,
                     count(&QueuePairRecord::naks_received))});
  }
  if (const auto n = count(&QueuePairRecord::cnps_received); n > 0) {
    out.push_back(
        {"congestion_notifications", 0,
         fmt::format("{} congestion notification{} received, {:.0f} a second: switches mark "
                     "what it sends.",
                     n, n == 1 ? "" : "s", static_cast<double>(n) / s.seconds)});
  }
  if (s.min_rtt_ns > 0 && s.srtt_ns > kQueueingRatio * s.min_rtt_ns) {
    out.push_back(
        {"queueing", 0,
         fmt::format("The round trip was {} on average, {:.1f} times the shortest ({}): {} "
                     "of queues on the way.",
                     time_text(s.srtt_ns), s.srtt_ns / s.min_rtt_ns, time_text(s.min_rtt_ns),
                     time_text(s.srtt_ns - s.min_rtt_ns))});
  }
  if (s.on_fallback > 0) {
    out.push_back({"fallback", s.on_fallback,
                   fmt::format("In {:.0f} % of the looks the fallback algorithm decided: the peer "
                               "grants nothing, or does not speak the protocol.",
                               s.on_fallback * 100)});
  }
}

std::string verdict_of(const Explanation& e, const Span& s) {
  const auto top = static_cast<std::size_t>(std::max_element(e.shares.begin(), e.shares.end()) -
                                            e.shares.begin());
  if (e.shares[top] == 0) {
    return s.bps == 0
               ? "It sent nothing, and nothing held it back."
               : fmt::format("It sent {}; what bounded it was not measured.", rate_text(s.bps));
  }
  static constexpr std::array<std::string_view, cc::kLimiters> kWords{
      "the application, which had nothing to send",
      "the receiver's grant",
      "its share of the own uplink",
      "congestion on the path",
      "the window",
      "credits of the far side",
      "the port",
  };
  return fmt::format("It sent {}; mostly bounded by {} ({:.0f} %).", rate_text(s.bps), kWords[top],
                     e.shares[top] * 100);
}

}  // namespace

Explanation explain(std::span<const QueuePairLook> looks, double seconds, std::uint64_t link_bps) {
  Explanation out;
  if (!looks.empty()) {
    const auto span_ns = static_cast<std::int64_t>(seconds * 1e9);
    const std::int64_t from = looks.back().unix_ns - span_ns;
    std::size_t skip = 0;
    while (skip + 1 < looks.size() && looks[skip + 1].unix_ns <= from) ++skip;
    looks = looks.subspan(skip);
  }
  if (looks.size() < 2 || looks.back().unix_ns <= looks.front().unix_ns) {
    out.verdict = "It was looked at once only; ask again in some seconds.";
    return out;
  }
  Span s{looks.front().record, looks.back().record};
  s.seconds = static_cast<double>(looks.back().unix_ns - looks.front().unix_ns) / 1e9;
  s.link_bps = link_bps;
  s.bps = static_cast<double>(s.grown_of(&QueuePairRecord::tx_bytes)) * 8 / s.seconds;
  std::size_t measured = 0;
  const std::span<const QueuePairLook> later = looks.subspan(1);
  const auto count = static_cast<double>(later.size());
  for (const QueuePairLook& look : later) {
    const QueuePairRecord& r = look.record;
    s.decided_bps += static_cast<double>(r.rate_bps) / count;
    if (r.backlog_bytes > 0) s.backlogged += 1 / count;
    if (r.on_fallback != 0) s.on_fallback += 1 / count;
    if (r.srtt_ns > 0) {
      ++measured;
      s.srtt_ns += static_cast<double>(r.srtt_ns);
    }
    if (r.min_rtt_ns > 0 &&
        (s.min_rtt_ns == 0 || static_cast<double>(r.min_rtt_ns) < s.min_rtt_ns)) {
      s.min_rtt_ns = static_cast<double>(r.min_rtt_ns);
    }
  }
  if (measured > 0) s.srtt_ns /= static_cast<double>(measured);

  std::array<std::uint64_t, cc::kLimiters> held{};
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i] = grown(s.first.limiter_ns[i], s.last.limiter_ns[i]);
  }
  const auto total = std::accumulate(held.begin(), held.end(), std::uint64_t{0});
  for (std::size_t i = 0; i < held.size() && total > 0; ++i) {
    out.shares[i] = static_cast<double>(held[i]) / static_cast<double>(total);
  }
  out.seconds = s.seconds;
  out.gbps = s.bps / 1e9;
  out.rx_gbps = static_cast<double>(s.grown_of(&QueuePairRecord::rx_bytes)) * 8 / s.seconds / 1e9;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (out.shares[i] < kWorthSaying) continue;
    const auto limiter = static_cast<cc::Limiter>(i);
    out.findings.push_back({"limited_by_" + std::string(cc::limiter_name(limiter)), out.shares[i],
                            limit_sentence(s, limiter, out.shares[i])});
  }
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.share > b.share; });
  add_troubles(s, out.findings);
  out.verdict = verdict_of(out, s);
  return out;
}

}  // namespace paceline::daemon
