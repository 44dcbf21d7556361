#include "control/experiment/live/report/live_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/live/blocks/metric_words.h"
#include "control/experiment/page/html_text.h"
#include "control/experiment/report/value_text.h"

namespace paceline::experiment::live {

namespace {

constexpr double kWidth = 1080;
constexpr double kHeight = 300;
constexpr double kLeft = 70;
constexpr double kRight = kWidth - 16;
constexpr double kTop = 26;
constexpr double kBottom = kHeight - 40;

// Maps a range of values to a range of positions.
struct Axis {
  double from = 0;
  double to = 1;
  double at_from = 0;
  double at_to = 1;
  double operator()(double value) const {
    return at_from + (value - from) / (to - from) * (at_to - at_from);
  }
};

// About five round values of an axis: steps of 1, 2 or 5 times a power of ten.
std::vector<double> ticks(const Axis& axis) {
  const double span = axis.to - axis.from;
  double step = std::pow(10, std::floor(std::log10(span / 5)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (span / step > 7) step *= factor;
  }
  std::vector<double> out;
  for (double v = std::ceil(axis.from / step) * step; v <= axis.to + step * 1e-9; v += step) {
    out.push_back(std::fabs(v) < step * 1e-9 ? 0 : v);
  }
  return out;
}

std::string text_at(double x, double y, std::string_view words, std::string_view name,
                    std::string_view anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, name, anchor, html_escaped(words));
}

std::string frame(const Axis& x, const Axis& y, std::string_view x_title, std::string_view y_title,
                  std::string_view unit, std::string_view label) {
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
                  kWidth, kHeight, html_escaped(label), html_escaped(label));
  for (const double v : ticks(y)) {
    out += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                       kLeft, kRight, y(v), y(v));
    out += text_at(kLeft - 6, y(v) + 4, significant(v, 3) + std::string(unit), "tick", "end");
  }
  for (const double v : ticks(x)) {
    out += text_at(x(v), kBottom + 15, significant(v, 4), "tick", "middle");
  }
  out += fmt::format("<path class=\"axis\" d=\"M{},{}V{}H{}\"/>\n", kLeft, kTop, kBottom, kRight);
  out += text_at((kLeft + kRight) / 2, kBottom + 32, x_title, "axis-title", "middle");
  return out + text_at(kLeft, kTop - 10, y_title, "panel-title", "start");
}

void widen(double& from, double& to) {
  const double margin = std::max({(to - from) * 0.06, std::fabs(to) * 1e-3, 1e-9});
  from -= margin;
  to += margin;
}

}  // namespace

std::string course_chart(BlockMetric metric, std::span<const SequencePoint> course,
                         std::uint32_t least_pairs) {
  if (course.size() < 2) return {};
  const bool share = info(metric).scale != Scale::difference;
  const double factor = share ? 100 : 1;
  const auto shown = [&](double contrast) {
    return std::isinf(contrast) ? contrast : factor * effect_of(metric, contrast);
  };
  // The first intervals are so wide that the rest could not be seen: they are drawn from the fourth
  // pair on.
  const std::size_t from_pair = std::min<std::size_t>(4, course.size());
  double from = 0;
  double to = 0;
  for (const SequencePoint& p : course) {
    from = std::min(from, shown(p.mean));
    to = std::max(to, shown(p.mean));
    if (p.n < from_pair) continue;
    from = std::min(from, shown(p.interval.low));
    to = std::max(to, shown(p.interval.high));
  }
  widen(from, to);
  const Axis x{1, static_cast<double>(course.size()), kLeft, kRight};
  const Axis y{from, to, kBottom, kTop};
  const SequencePoint& last = course.back();
  std::string out =
      frame(x, y, "pairs", fmt::format("{}: candidate against champion", info(metric).label),
            share ? " %" : "",
            fmt::format("Effect on {} after each pair; after {}: {} {}", info(metric).label, last.n,
                        effect_words(metric, effect_of(metric, last.mean)),
                        interval_words(metric, {effect_of(metric, last.interval.low),
                                                effect_of(metric, last.interval.high)})));
  const auto clipped = [&](double value) { return y(std::clamp(value, from, to)); };
  std::string upper, lower, line;
  for (const SequencePoint& p : course) {
    line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "M" : "L", x(p.n), y(shown(p.mean)));
    if (p.n < from_pair) continue;
    upper += fmt::format("{}{:.1f},{:.1f}", upper.empty() ? "M" : "L", x(p.n),
                         clipped(shown(p.interval.high)));
    lower.insert(0, fmt::format("L{:.1f},{:.1f}", x(p.n), clipped(shown(p.interval.low))));
  }
  out += fmt::format("<g class=\"arm-1\"><path class=\"band\" d=\"{}{}Z\"/>", upper, lower);
  out += fmt::format("<path class=\"line\" d=\"{}\"/></g>\n", line);
  out += fmt::format("<line class=\"one\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                     kLeft, kRight, y(0), y(0));
  if (least_pairs <= course.size()) {
    const double at = x(least_pairs);
    out +=
        fmt::format("<line class=\"reading\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>\n",
                    at, at, kTop, kBottom);
    out += text_at(at + 4, kTop + 10, "decisions from here on", "hint", "start");
  }
  return out + "</svg>\n";
}

std::string blocks_chart(BlockMetric metric, std::span<const BlockRecord> records,
                         const std::vector<std::string>& arms) {
  double from = std::numeric_limits<double>::infinity();
  double to = -from;
  std::uint32_t blocks = 1;
  for (const BlockRecord& r : records) {
    blocks = std::max(blocks, r.place.block + 1);
    const double value = r.values[metric];
    if (r.discarded != Discarded::no || !std::isfinite(value)) continue;
    from = std::min(from, value);
    to = std::max(to, value);
  }
  if (!(from <= to)) return {};
  widen(from, to);
  const Axis x{-0.5, blocks - 0.5, kLeft, kRight};
  const Axis y{from, to, kBottom - 14, kTop};
  std::string out = frame(x, y, "blocks, in the order of time", std::string(info(metric).name), "",
                          fmt::format("{} of every block, by arm", info(metric).label));
  for (const BlockRecord& r : records) {
    const double value = r.values[metric];
    const bool shown = r.discarded == Discarded::no && std::isfinite(value);
    out += fmt::format(
        "<g class=\"arm-{}\"><circle class=\"point{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
        "r=\"3\"><title>block {}, {}{}</title></circle></g>\n",
        r.place.arm, shown ? "" : " hollow", x(r.place.block), shown ? y(value) : kBottom - 5,
        r.place.block, html_escaped(r.place.arm < arms.size() ? arms[r.place.arm] : "?"),
        r.discarded != Discarded::no ? ": " + html_escaped(r.why) : "");
  }
  double at = kRight - 260;
  for (std::size_t a = 0; a < arms.size(); ++a) {
    out += fmt::format(
        "<g class=\"arm-{}\"><circle class=\"point\" cx=\"{:.1f}\" cy=\"{}\" r=\"4\"/></g>\n", a,
        at, kTop - 14);
    out += text_at(at + 9, kTop - 10, arms[a], "legend", "start");
    at += 130;
  }
  return out + "</svg>\n";
}

}  // namespace paceline::experiment::live
