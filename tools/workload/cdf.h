// Flow-size distributions as cumulative shares over sizes, linear between the points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

class Cdf {
 public:
  struct Point {
    double bytes = 0;
    double share = 0;  // P(size <= bytes)
  };

  Cdf() = default;
  // Points whose sizes and shares do not decrease; the last share is 1; not empty.
  explicit Cdf(std::vector<Point> points);

  // Inverse by interpolation, u in [0, 1): at least 1 byte, to the nearest byte. A first share
  // above 0 is an atom at the first size.
  std::uint64_t quantile(double u) const;

  // Mean size in bytes, of the piecewise linear distribution.
  double mean() const { return mean_; }

  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  double mean_ = 0;
};

// Web search: the measurement of DCTCP (Alizadeh et al., SIGCOMM 2010, fig. 4) as tabulated by the
// HPCC simulator (alibaba-edu/High-Precision-Congestion-Control, traffic_gen/
// WebSearch_distribution.txt).
const Cdf& web_search_cdf();

// Hadoop at Facebook: Roy et al., SIGCOMM 2015, as tabulated there (FbHdp_distribution.txt).
const Cdf& fb_hadoop_cdf();

// Lines of `size share`. Shares end at 1, or at 100 (per cent, as the HPCC simulator writes them).
config::Read<Cdf> parse_cdf(std::string_view text, const std::string& source);
config::Read<Cdf> read_cdf_file(const std::string& path);

}  // namespace paceline::workload
