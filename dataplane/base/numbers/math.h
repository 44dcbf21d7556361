// Logarithm, exponential and power that give the same bits on every compiler, optimisation level
// and machine with IEEE 754 doubles. libm does not promise that (glibc alone picks among several
// implementations by CPU), and results must not depend on where they were computed. Only + - * /
// and operations on bits; the build forbids contraction into fused multiply-adds.
//
// Errors against the exact value, over the whole range: log, exp and pow below 1 ulp (the tests
// measure over 2 million arguments). Subnormal arguments and results are handled. Special values
// follow C17 Annex F.10.3.1, F.10.3.7 and F.10.4.4; nothing sets errno.
#pragma once

namespace paceline {

// log(0) = -inf; a negative argument gives NaN.
double det_log(double x);

// Overflows to inf above 709.78..., underflows to 0 below -745.13...
double det_exp(double x);

// A negative base is defined for whole exponents only, else NaN.
double det_pow(double base, double exponent);

}  // namespace paceline
