// Measured values and effects as people read them: a common unit per row, three or four significant
// digits, signs on effects.
#pragma once

#include <string>
#include <string_view>

#include "control/experiment/analysis/effects.h"

namespace paceline::experiment {

// Significant digits without an exponent in the range of measurements: "0.9534", "66.91", "1203".
// Digits before the point are never rounded away.
std::string significant(double value, int digits = 4);

// A unit fit for printing values of a metric whose largest is about `largest`: 1 MB = 10^6 bytes.
struct DisplayUnit {
  double factor = 1;      // printed = value x factor
  std::string_view name;  // "", "%", "us", "ms", "s", "B", "KB", "MB", "GB", "Gb/s", "pkt"
};
DisplayUnit display_unit(Unit unit, double largest);

// How an effect and its interval are written: "+42.4 %", "[+40.1, +44.8]"; from +1000 % on
// "x43.1", "[x40.2, x45.9]"; a difference in the unit of its row, "-24.9 MB"; shares in points,
// "pp".
struct EffectText {
  std::string effect;
  std::string interval;  // empty: none
};
EffectText effect_text(const PairedEffect& paired, Unit unit);

// "12.5 us"; a value without a unit, or "-" for none, stays as it is.
std::string with_unit(const std::string& value, const std::string& unit);

std::string p_text(double p);  // "<.001", ".023", "-" for NaN

}  // namespace paceline::experiment
