#include "control/tuner/search_space.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "cc/params.h"
#include "control/experiment/text/number_text.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tuner {

namespace {

constexpr double kLogFrom = 10;  // ranges wider than this are searched by ratio

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string range_text(double low, double high) {
  return cc::number_text(low) + " to " + cc::number_text(high);
}

}  // namespace

double Dimension::value_of(double unit) const {
  const double value =
      log_scale ? low * std::exp(unit * std::log(high / low)) : low + unit * (high - low);
  return std::clamp(whole ? std::round(value) : value, low, high);
}

double Dimension::unit_of(double value) const {
  const double clipped = std::clamp(value, low, high);
  return log_scale ? std::log(clipped / low) / std::log(high / low)
                   : (clipped - low) / (high - low);
}

std::optional<DimensionRequest> parse_dimension(const std::string& text) {
  DimensionRequest request;
  const std::size_t equals = text.find('=');
  request.name = text.substr(0, equals);
  if (request.name.empty()) return std::nullopt;
  if (equals == std::string::npos) return request;
  const std::string_view bounds = std::string_view(text).substr(equals + 1);
  const std::size_t colon = bounds.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  request.low = number_of(bounds.substr(0, colon));
  request.high = number_of(bounds.substr(colon + 1));
  if (!request.low || !request.high) return std::nullopt;
  return request;
}

SearchSpace::SearchSpace(const cc::AlgorithmInfo& algorithm, std::vector<double> start,
                         std::span<const DimensionRequest> requests,
                         std::vector<std::string>& errors)
    : algorithm_(algorithm), start_(std::move(start)) {
  for (const DimensionRequest& request : requests) {
    const int index = cc::find_param(algorithm.params, request.name);
    if (index < 0) {
      std::vector<std::string_view> names;
      for (const cc::ParamSpec& spec : algorithm.params) names.push_back(spec.name);
      const std::string near(config::nearest_name(request.name, names));
      errors.push_back(std::string(algorithm.name) + " has no parameter '" + request.name + "'; " +
                       (near.empty() ? "allowed is " + config::list_names(names)
                                     : "the nearest is '" + near + "'"));
      continue;
    }
    Dimension dimension;
    dimension.param = static_cast<std::size_t>(index);
    const cc::ParamSpec& spec = algorithm.params[dimension.param];
    const double from = start_[dimension.param];
    const auto same = [&dimension](const Dimension& d) { return d.param == dimension.param; };
    if (std::any_of(dimensions_.begin(), dimensions_.end(), same)) {
      errors.push_back("parameter '" + request.name + "' is named twice");
      continue;
    }
    if (!request.low && spec.unit != "flag" && from == 0) {
      errors.push_back("'" + request.name + "' starts at 0: say how far it may go, as in " +
                       request.name + "=LOW:HIGH");
      continue;
    }
    dimension.whole = cc::is_whole_unit(spec.unit);
    if (spec.unit == "flag") {
      dimension.low = request.low.value_or(0);
      dimension.high = request.high.value_or(1);
    } else {
      dimension.low = request.low.value_or(std::max(spec.min, from / kDefaultSpan));
      dimension.high = request.high.value_or(std::min(spec.max, from * kDefaultSpan));
      if (dimension.whole && !request.low) dimension.low = std::ceil(dimension.low);
      if (dimension.whole && !request.high) dimension.high = std::floor(dimension.high);
    }
    if (!(dimension.low < dimension.high)) {
      errors.push_back("bounds of '" + request.name +
                       "': " + range_text(dimension.low, dimension.high) +
                       "; the lower one must come first and be smaller");
      continue;
    }
    if (dimension.low < spec.min || dimension.high > spec.max) {
      errors.push_back("bounds of '" + request.name +
                       "': " + range_text(dimension.low, dimension.high) +
                       "; allowed: " + range_text(spec.min, spec.max));
      continue;
    }
    dimension.log_scale = dimension.low > 0 && dimension.high / dimension.low > kLogFrom;
    dimensions_.push_back(dimension);
  }
}

const cc::ParamSpec& SearchSpace::spec_of(std::size_t dimension) const {
  return algorithm_.params[dimensions_[dimension].param];
}

std::vector<double> SearchSpace::values_of(std::span<const double> point) const {
  std::vector<double> values = start_;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    // Three digits: what a search can tell apart, and a person can read.
    const Dimension& d = dimensions_[i];
    values[d.param] = std::clamp(experiment::rounded(d.value_of(point[i]), 3), d.low, d.high);
  }
  return values;
}

std::vector<double> SearchSpace::start_point() const {
  std::vector<double> point;
  for (const Dimension& dimension : dimensions_) {
    point.push_back(dimension.unit_of(start_[dimension.param]));
  }
  return point;
}

}  // namespace paceline::tuner
