#include "control/experiment/report/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::experiment {
namespace {

std::string signed_significant(double value) {
  if (value == 0) return "0";
  return fmt::format("{}{}", value > 0 ? '+' : '-', significant(std::fabs(value), 3));
}

// Between -100 % and about +1000 %. More digits near -100 %, where they matter.
std::string percent(double effect) {
  const double points = effect * 100;
  const int decimals = effect < -0.99 || std::fabs(points) < 1 ? 2 : 1;
  std::string text = fmt::format("{:+.{}f}", points, decimals);
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  return zero ? text.substr(1) : text;  // neither +0.00 nor -0.00
}

std::string factor(double effect) { return fmt::format("x{}", significant(1 + effect, 3)); }

}  // namespace

std::string significant(double value, int digits) {
  if (std::isnan(value)) return "-";
  const double magnitude = std::fabs(value);
  if (value == 0) return "0";
  if (magnitude < 0.0001) return fmt::format("{:.1e}", value);
  int decimals = digits - 1;
  for (double bound = 10; magnitude >= bound && decimals > 0; bound *= 10) --decimals;
  for (double bound = 1; magnitude < bound && decimals < digits + 3; bound /= 10) ++decimals;
  if (std::trunc(value) == value) decimals = 0;  // counts read as counts: 12, not 12.00
  return fmt::format("{:.{}f}", value, decimals);
}

DisplayUnit display_unit(Unit unit, double largest) {
  switch (unit) {
    case Unit::none:
      return {1, ""};
    case Unit::share:
      return {100, "%"};
    case Unit::gbps:
      return {1, "Gb/s"};
    case Unit::packets:
      return {1, "pkt"};
    case Unit::micros:
      if (largest >= 1e7) return {1e-6, "s"};
      return largest >= 1e4 ? DisplayUnit{1e-3, "ms"} : DisplayUnit{1, "us"};
    case Unit::bytes:
      if (largest >= 1e10) return {1e-9, "GB"};
      if (largest >= 1e6) return {1e-6, "MB"};
      return largest >= 1e4 ? DisplayUnit{1e-3, "KB"} : DisplayUnit{1, "B"};
  }
  return {1, "?"};
}

EffectText effect_text(const PairedEffect& paired, Unit unit) {
  if (std::isnan(paired.effect)) return {std::string(1, '-'), {}};
  EffectText text;
  const bool has_interval = !std::isnan(paired.interval.low);
  const auto bracket = [&](auto&& format) {
    return has_interval
               ? fmt::format("[{}, {}]", format(paired.interval.low), format(paired.interval.high))
               : std::string();
  };
  if (paired.scale == Compare::ratio) {
    const bool large = paired.effect >= 10 || (has_interval && paired.interval.high >= 10);
    text.effect = large ? factor(paired.effect) : percent(paired.effect) + " %";
    text.interval = large ? bracket(factor) : bracket(percent);
    return text;
  }
  const double largest = std::max(paired.baseline_mean, paired.treatment_mean);
  const DisplayUnit shown = display_unit(unit, largest);
  const auto scaled = [&](double value) { return signed_significant(value * shown.factor); };
  const std::string_view name = unit == Unit::share ? "pp" : shown.name;
  text.effect = fmt::format("{}{}{}", scaled(paired.effect), name.empty() ? "" : " ", name);
  text.interval = bracket(scaled);
  return text;
}

std::string with_unit(const std::string& value, const std::string& unit) {
  return unit.empty() || value == "-" ? value : value + " " + unit;
}

std::string p_text(double p) {
  if (std::isnan(p)) return "-";
  if (p < 0.001) return "<.001";
  return fmt::format("{:.3f}", p).substr(p < 0.9995 ? 1 : 0);
}

}  // namespace paceline::experiment
