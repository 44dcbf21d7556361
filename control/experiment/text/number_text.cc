#include "control/experiment/text/number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace paceline::experiment {

namespace {

bool whole(double value) { return std::fabs(value) < 0x1p53 && std::trunc(value) == value; }

double parsed(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

double rounded(double value, int digits) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  if (whole(value)) return value + 0.0;  // minus zero becomes zero
  return parsed(fmt::format("{:.{}g}", value, digits));
}

std::string number_text(double value) {
  const double kept = rounded(value);
  if (std::isnan(kept)) return "null";
  // A large value with a fraction rounds to a whole number, and must then look like one: what is
  // written again after reading gives the same text.
  return whole(kept) ? fmt::format("{:.0f}", kept)
                     : fmt::format("{:.{}g}", kept, kMeasurementDigits);
}

}  // namespace paceline::experiment
