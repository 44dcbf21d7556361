#include "control/tuner/online/observation/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace paceline::tuner::online {

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

unsigned quarter(double value) { return static_cast<unsigned>(value * 4 + 0.5); }

}  // namespace

std::size_t degree_bin(std::uint32_t senders) {
  if (senders == 0) return 0;
  const auto bin = static_cast<std::size_t>(std::bit_width(senders - 1)) + 1;
  return std::min(bin, kDegrees - 1);
}

std::uint32_t degree_senders(std::uint32_t bin) { return bin == 0 ? 0 : 1U << (bin - 1); }

std::string Signature::words() const {
  return fmt::format(
      "load {} to {} %, up to {} senders at a time, bytes by size {:.0f}/{:.0f}/{:.0f} %{}",
      load * 10, load * 10 + 10, degree_senders(degree), bytes[0] * 100, bytes[1] * 100,
      bytes[2] * 100, core_marks ? ", marks from the core" : "");
}

std::string Signature::key() const {
  return fmt::format("l{}-d{}-s{}{}{}-c{}", load, degree, quarter(bytes[0]), quarter(bytes[1]),
                     quarter(bytes[2]), core_marks ? 1 : 0);
}

double distance(const Signature& a, const Signature& b) {
  const auto apart = [](std::uint32_t x, std::uint32_t y) {
    return std::abs(static_cast<double>(x) - static_cast<double>(y));
  };
  double bytes = 0;
  for (std::size_t s = 0; s < a.bytes.size(); ++s) bytes += std::abs(a.bytes[s] - b.bytes[s]);
  // Three deciles of load, a factor of 8 in the degree, half of the bytes in another class, or
  // marks elsewhere: each alone makes a third of another workload. So does a link of twice the
  // rate, since many parameters are rates and times.
  const double links =
      a.link_gbps > 0 && b.link_gbps > 0 ? std::abs(std::log2(a.link_gbps / b.link_gbps)) / 3 : 0;
  return apart(a.load, b.load) / 9 + apart(a.degree, b.degree) / 9 + bytes / 3 +
         (a.core_marks == b.core_marks ? 0 : 1.0 / 3) + links;
}

void SignatureBuilder::add(const Window& window) {
  ++state_.windows;
  for (std::size_t s = 0; s < telemetry::kMessageSizes; ++s) {
    state_.mix.sizes[s] += window.messages[s].begun;
    state_.bytes[s] += window.messages[s].begun_bytes;
  }
  ++state_.mix.degrees[degree_bin(window.senders)];
  state_.tx_bytes += window.tx_bytes;
  state_.rx_bytes += window.rx_bytes;
  state_.span_ns += window.end_ns - window.begin_ns;
  state_.line_bps = std::max(state_.line_bps, window.line_bps);
  const double could = static_cast<double>(window.line_bps) / 8e9 * span_ns(window);
  if (static_cast<double>(window.rx_bytes) < kQuietLink * could) {
    state_.quiet_packets += window.rx_packets;
    state_.quiet_marks += window.ce_packets;
  }
}

std::uint64_t SignatureBuilder::messages() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : state_.mix.sizes) sum += n;
  return sum;
}

double SignatureBuilder::offered_bps() const {
  std::uint64_t bytes = 0;
  for (const std::uint64_t n : state_.bytes) bytes += n;
  return state_.span_ns == 0
             ? 0
             : static_cast<double>(bytes) * 8e9 / static_cast<double>(state_.span_ns);
}

Signature SignatureBuilder::signature() const {
  Signature out;
  const double could =
      static_cast<double>(state_.line_bps) / 8e9 * static_cast<double>(state_.span_ns);
  if (could > 0) {
    const double used = static_cast<double>(std::max(state_.tx_bytes, state_.rx_bytes)) / could;
    out.load = static_cast<std::uint32_t>(std::clamp(used * 10, 0.0, 9.0));
  }
  // p95 over the windows in which anybody sent: how deep a wave is, not how seldom one comes.
  std::uint64_t busy = 0;
  for (std::size_t d = 1; d < kDegrees; ++d) busy += state_.mix.degrees[d];
  std::uint64_t seen = 0;
  for (std::size_t d = 1; d < kDegrees && busy > 0; ++d) {
    seen += state_.mix.degrees[d];
    if (static_cast<double>(seen) >= 0.95 * static_cast<double>(busy)) {
      out.degree = static_cast<std::uint32_t>(d);
      break;
    }
  }
  std::uint64_t bytes = 0;
  for (const std::uint64_t n : state_.bytes) bytes += n;
  for (std::size_t s = 0; s < out.bytes.size(); ++s) out.bytes[s] = share(state_.bytes[s], bytes);
  out.core_marks = share(state_.quiet_marks, state_.quiet_packets) > kCoreMarkShare;
  out.link_gbps = static_cast<double>(state_.line_bps) / 1e9;
  return out;
}

}  // namespace paceline::tuner::online
