#include "tools/diagnose/diagnosis_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include "control/diagnosis/robust.h"
#include "control/experiment/page/html_text.h"
#include "control/experiment/report/value_text.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;
using diagnosis::PairEvidence;
using diagnosis::PairWindow;
using experiment::html_escaped;
using experiment::significant;

constexpr double kWidth = 1080;
constexpr double kLeft = 70;
constexpr double kRight = kWidth - 16;

std::string text_at(double x, double y, std::string_view words, std::string_view name,
                    std::string_view anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, name, anchor, html_escaped(words));
}

std::string opening(double height, std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                     height, html_escaped(label));
}

// Which queue pairs a culprit concerns: those of its NIC, or those that pass its link or switch.
class Concerned {
 public:
  Concerned(const Evidence& evidence, const std::string& culprit) : e_(evidence) {
    nics_.resize(e_.nics.size());
    links_.resize(e_.links.size());
    for (std::size_t n = 0; n < nics_.size(); ++n) nics_[n] = e_.nics[n].name == culprit;
    for (const diagnosis::PortEvidence& port : e_.ports) {
      if (port.name == culprit) nics_[port.nic] = true;
    }
    for (std::size_t r = 0; r < e_.ranks.size(); ++r) {
      if (fmt::format("rank{}", r) == culprit) nics_[e_.ranks[r].nic] = true;
    }
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const diagnosis::LinkEvidence& link = e_.links[l];
      links_[l] = link.name == culprit || link.first == culprit || link.second == culprit;
    }
  }

  bool operator()(const PairEvidence& pair) const {
    const auto passes = [&](std::uint32_t directed) { return links_[directed / 2]; };
    return nics_[pair.src] || nics_[pair.dst] ||
           std::any_of(pair.way.begin(), pair.way.end(), passes) ||
           std::any_of(pair.ack_way.begin(), pair.ack_way.end(), passes);
  }

 private:
  const Evidence& e_;
  std::vector<bool> nics_;
  std::vector<bool> links_;
};

// One figure of a window of some queue pairs; NaN: there is none.
using Figure = std::function<double(const std::vector<const PairEvidence*>&, std::size_t)>;

double sum_of(const std::vector<const PairEvidence*>& pairs, std::size_t w,
              double (*figure)(const PairWindow&)) {
  double sum = 0;
  for (const PairEvidence* pair : pairs) sum += figure(pair->windows[w]);
  return sum;
}

struct Lane {
  std::string_view title;
  Figure figure;
};

std::vector<Lane> lanes_of(const Evidence& e) {
  const auto bytes = [](const PairWindow& w) { return static_cast<double>(w.bytes); };
  const auto per_packet = [&e, bytes](double (*count)(const PairWindow&)) {
    return [&e, bytes, count](const auto& pairs, std::size_t w) {
      const double packets = sum_of(pairs, w, bytes) / e.packet_bytes;
      return packets <= 0 ? std::nan("") : 100 * sum_of(pairs, w, count) / std::ceil(packets);
    };
  };
  return {
      {"sent by a queue pair, Gb/s",
       [&e, bytes](const auto& pairs, std::size_t w) {
         const double us = diagnosis::window_us(e, w);
         if (pairs.empty() || us <= 0) return std::nan("");
         return sum_of(pairs, w, bytes) * 8e-3 / us / static_cast<double>(pairs.size());
       }},
      {"round trips above an empty fabric's, us, median",
       [](const auto& pairs, std::size_t w) {
         std::vector<double> some;
         for (const PairEvidence* pair : pairs) {
           const double rtt_ns = pair->windows[w].rtt_ns;
           if (rtt_ns != 0) some.push_back((rtt_ns - pair->base_rtt_ns) / 1e3);
         }
         return some.empty() ? std::nan("") : std::max(0.0, diagnosis::median(some));
       }},
      {"losses, % of the packets",
       per_packet([](const PairWindow& w) { return static_cast<double>(w.losses); })},
      {"congestion notifications, % of the packets",
       per_packet([](const PairWindow& w) { return static_cast<double>(w.marks); })},
  };
}

double time_ms(const Evidence& e, std::size_t window) {
  return static_cast<double>(e.window_ends[window].count) / 1e9;
}

// Steps from window to window, with gaps where figures are missing.
std::string steps(const Evidence& e, const std::vector<double>& values, double most, double top,
                  double bottom) {
  std::string path;
  const double all_ms = time_ms(e, values.size() - 1);
  const auto x = [&](double ms) { return kLeft + ms / all_ms * (kRight - kLeft); };
  bool drawn = false;
  for (std::size_t w = 0; w < values.size(); ++w) {
    if (std::isnan(values[w])) {
      drawn = false;
      continue;
    }
    const double y = bottom - values[w] / most * (bottom - top);
    const double begin = w == 0 ? 0 : time_ms(e, w - 1);
    path += drawn ? fmt::format("V{:.1f}", y) : fmt::format("M{:.1f},{:.1f}", x(begin), y);
    path += fmt::format("H{:.1f}", x(time_ms(e, w)));
    drawn = true;
  }
  return path;
}

}  // namespace

std::string matrix_chart(const Evidence& evidence, const std::vector<std::size_t>& nics) {
  if (nics.empty()) return {};
  constexpr double kMuch = 4;  // times as slow as the median cell: full colour
  const std::size_t all = evidence.nics.size();
  std::vector<double> some;
  for (const std::size_t from : nics) {
    for (const std::size_t to : nics) {
      const double slow = evidence.slowness[from * all + to];
      if (slow > 0) some.push_back(slow);
    }
  }
  const double usual = std::max(diagnosis::median(some), 1e-9);
  const double cell = std::min(28.0, (kRight - 2 * kLeft) / static_cast<double>(nics.size()));
  const double side = cell * static_cast<double>(nics.size());
  std::string out = opening(kLeft + side + 10,
                            "Time of messages over the ideal, by sender and "
                            "receiver");
  for (std::size_t row = 0; row < nics.size(); ++row) {
    const std::string& from = evidence.nics[nics[row]].name;
    const double at = cell * static_cast<double>(row);
    out += text_at(2 * kLeft - 6, kLeft + at + cell / 2 + 4, from, "tick", "end");
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f}) rotate(-60)\">{}</g>\n",
                       2 * kLeft + at + cell / 2, kLeft - 6, text_at(0, 0, from, "tick", "start"));
    for (std::size_t column = 0; column < nics.size(); ++column) {
      const double slow = evidence.slowness[nics[row] * all + nics[column]];
      if (slow <= 0) continue;
      const double share = std::clamp((slow / usual - 1) / (kMuch - 1), 0.0, 1.0);
      out += fmt::format(
          "<g class=\"mark worse\"><rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\" opacity=\"{:.2f}\"><title>{} to {}: {:.2f}</title></rect></g>\n",
          2 * kLeft + cell * static_cast<double>(column), kLeft + at, cell - 1, cell - 1,
          0.06 + 0.94 * share, html_escaped(from), html_escaped(evidence.nics[nics[column]].name),
          slow);
    }
  }
  return out + "</svg>\n";
}

std::string timeline_chart(const Evidence& evidence, const std::string& culprit) {
  if (evidence.window_ends.empty() || evidence.pairs.empty()) return {};
  constexpr double kLane = 110;
  constexpr double kDrawn = 70;
  const Concerned concerned(evidence, culprit);
  std::vector<const PairEvidence*> its, others;
  for (const PairEvidence& pair : evidence.pairs) {
    (concerned(pair) ? its : others).push_back(&pair);
  }
  const std::vector<Lane> lanes = lanes_of(evidence);
  std::string out =
      opening(kLane * static_cast<double>(lanes.size()) + 30, "What queue pairs counted over time");
  double top = 24;
  for (const Lane& lane : lanes) {
    std::vector<double> ours, theirs;
    double most = 0;
    for (std::size_t w = 0; w < evidence.window_ends.size(); ++w) {
      ours.push_back(its.empty() ? std::nan("") : lane.figure(its, w));
      theirs.push_back(others.empty() ? std::nan("") : lane.figure(others, w));
      for (const double value : {ours.back(), theirs.back()}) {
        if (!std::isnan(value)) most = std::max(most, value);
      }
    }
    const double bottom = top + kDrawn;
    out += text_at(kLeft, top - 8, lane.title, "panel-title", "start");
    out += fmt::format("<path class=\"axis\" d=\"M{},{:.1f}V{:.1f}H{}\"/>\n", kLeft, top, bottom,
                       kRight);
    out += text_at(kLeft - 6, bottom, "0", "tick", "end");
    if (most <= 0) {
      out += text_at(kLeft + 8, bottom - 6, "none", "hint", "start");
    } else {
      out += text_at(kLeft - 6, top + 8, significant(most, 3), "tick", "end");
      out += fmt::format("<g class=\"arm-0\"><path class=\"line fine\" d=\"{}\"/></g>\n",
                         steps(evidence, theirs, most, top, bottom));
      out += fmt::format("<g class=\"arm-1\"><path class=\"line fine\" d=\"{}\"/></g>\n",
                         steps(evidence, ours, most, top, bottom));
    }
    top += kLane;
  }
  const double ms = time_ms(evidence, evidence.window_ends.size() - 1);
  out += text_at(kLeft, top - 24, "0", "tick", "middle");
  out += text_at(kRight, top - 24, significant(ms, 4) + " ms", "tick", "end");
  return out + "</svg>\n";
}

}  // namespace paceline::tools
