// Numbers as the results file writes them, and values rounded to what that keeps.
//
// Nine significant digits: a difference in the last bits of a double (another libm, another CPU)
// changes the text only if the value lies within that difference of a rounding boundary, about one
// chance in a million per figure; and no measurement here is good to nine digits. Whole numbers are
// kept exactly.
#pragma once

#include <string>

namespace paceline::experiment {

// Whole numbers below 2^53 in full, other values with 9 significant digits, "null" for NaN and
// infinities (JSON has neither), "0" for minus zero. Does not depend on the locale.
std::string number_text(double value);

// The double that number_text(value) reads back as; NaN for what it writes as null. Idempotent.
double rounded(double value);

}  // namespace paceline::experiment
