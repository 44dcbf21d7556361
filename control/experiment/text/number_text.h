// Numbers as the results file writes them, and values rounded to what that keeps.
//
// Measurements keep nine significant digits; whole numbers are kept exactly. Figures that come out
// of libm (quantiles, p-values: Boost.Math) keep six: another C library or CPU may change the last
// bits of a double, and that changes the text only if the value lies that close to a rounding
// boundary: about one chance in 10^9 per figure.
#pragma once

#include <string>

namespace paceline::experiment {

inline constexpr int kMeasurementDigits = 9;
inline constexpr int kFigureDigits = 6;

// The nearest value with this many significant digits; whole numbers below 2^53 stay as they are;
// minus zero becomes zero; infinities become NaN.
double rounded(double value, int digits = kMeasurementDigits);

// rounded(value) as text: whole numbers in full, "null" for NaN (JSON has none). Does not depend on
// the locale, and reads back as rounded(value).
std::string number_text(double value);

}  // namespace paceline::experiment
