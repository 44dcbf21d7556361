// Which parameters a search may move, and how far: a box of values that is the unit cube to the
// sampler. A parameter whose range spans more than a decade and excludes zero is searched on a
// logarithmic scale, a flag takes 0 or 1, counts and bytes stay whole.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"

namespace paceline::tuner {

struct Dimension {
  std::size_t param = 0;  // index into AlgorithmInfo::params
  double low = 0;
  double high = 1;
  bool log_scale = false;
  bool whole = false;

  // `unit` in [0, 1]; the inverse is exact except for rounding to whole numbers.
  double value_of(double unit) const;
  double unit_of(double value) const;
};

// The user's text for one parameter: "NAME" or "NAME=LOW:HIGH".
struct DimensionRequest {
  std::string name;
  std::optional<double> low;
  std::optional<double> high;
};

// A parameter asked for without bounds may go to this multiple and this fraction of where it
// starts, within what its ParamSpec allows.
inline constexpr double kDefaultSpan = 16;

class SearchSpace {
 public:
  // `start`: the values of the base profile, in ParamSpec order. Errors (unknown name, bounds the
  // wrong way round or outside the ParamSpec's, no bounds for a parameter that starts at zero) are
  // appended to `errors`; the space is unusable then.
  SearchSpace(const cc::AlgorithmInfo& algorithm, std::vector<double> start,
              std::span<const DimensionRequest> requests, std::vector<std::string>& errors);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  std::size_t size() const { return dimensions_.size(); }
  const cc::ParamSpec& spec_of(std::size_t dimension) const;

  // All parameters of the algorithm: those of the space rounded to three significant digits, the
  // others as they started.
  std::vector<double> values_of(std::span<const double> point) const;
  const std::vector<double>& start_values() const { return start_; }
  // Their position; each coordinate is clipped to the box.
  std::vector<double> start_point() const;

 private:
  const cc::AlgorithmInfo& algorithm_;
  std::vector<double> start_;
  std::vector<Dimension> dimensions_;
};

// "NAME" or "NAME=LOW:HIGH"; nullopt when it is neither.
std::optional<DimensionRequest> parse_dimension(const std::string& text);

}  // namespace paceline::tuner
