#include "cc/params.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include "cc/nearest_name.h"
#include "cc/profile_owners.h"
#include "cc/registry.h"

namespace paceline::cc {
namespace {

std::string quoted(std::string_view text) {
  std::string result(1, '\'');
  result += text;
  result += '\'';
  return result;
}

std::string with_unit(double value, std::string_view unit) {
  std::string text = number_text(value);
  if (!unit.empty() && unit != "1" && unit != "flag" && unit != "count") {
    text += ' ';
    text += unit;
  }
  return text;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += quoted(name);
  }
  return text;
}

// Collects the errors of one resolution.
class Checker {
 public:
  Checker(const AlgorithmInfo& algorithm, const PortFacts& facts)
      : algorithm_(algorithm), facts_(facts) {}

  void unknown(ParamError::Kind kind, std::string_view what, std::string_view name,
               std::span<const std::string_view> valid) {
    ParamError error;
    error.kind = kind;
    error.name = name;
    error.message =
        std::string(algorithm_.name) + " has no " + std::string(what) + " " + quoted(name);
    const std::vector<std::string_view> owners = kind == ParamError::Kind::unknown_profile
                                                     ? profile_owners(name, algorithms())
                                                     : std::vector<std::string_view>{};
    // A name that is far from all others is not a typing error: suggesting one would not help.
    if (owners.empty() && !valid.empty()) {
      error.nearest = nearest_name(name, valid, std::max<std::size_t>(2, name.size() / 3));
    }
    if (!owners.empty()) error.message += "; " + listed(owners) + " has";
    if (!error.nearest.empty()) {
      error.message += "; the nearest is " + quoted(error.nearest);
    } else if (!valid.empty()) {
      error.message += "; allowed is " + listed(valid);
    }
    errors.push_back(std::move(error));
  }

  void value(const ParamSpec& spec, double value) {
    if (!std::isfinite(value)) {
      add(ParamError::Kind::not_finite, spec, value, "is not a finite number; " + allowed(spec));
    } else if (value < spec.min || value > spec.max) {
      add(ParamError::Kind::out_of_range, spec, value, "is out of range; " + allowed(spec));
    } else if (is_whole_unit(spec.unit) && value != std::trunc(value)) {
      add(ParamError::Kind::not_whole, spec, value,
          "is not whole; allowed are whole numbers from " + number_text(spec.min) + " to " +
              with_unit(spec.max, spec.unit));
    } else if (spec.unit == "Mb/s" && facts_.link_rate.bps != 0 &&
               value * 1e6 > static_cast<double>(facts_.link_rate.bps)) {
      add(ParamError::Kind::above_link_rate, spec, value,
          "is above the link rate of " +
              with_unit(static_cast<double>(facts_.link_rate.bps) / 1e6, spec.unit));
    }
  }

  std::vector<ParamError> errors;

 private:
  static std::string allowed(const ParamSpec& spec) {
    return "allowed is " + number_text(spec.min) + " to " + with_unit(spec.max, spec.unit);
  }

  void add(ParamError::Kind kind, const ParamSpec& spec, double value, const std::string& why) {
    ParamError error;
    error.kind = kind;
    error.name = spec.name;
    error.value = value;
    error.message = std::string(algorithm_.name) + "." + std::string(spec.name) + " = " +
                    with_unit(value, spec.unit) + " " + why;
    errors.push_back(std::move(error));
  }

  const AlgorithmInfo& algorithm_;
  const PortFacts& facts_;
};

std::vector<std::string_view> parameter_names(const AlgorithmInfo& algorithm) {
  std::vector<std::string_view> names;
  for (const ParamSpec& spec : algorithm.params) names.push_back(spec.name);
  return names;
}

std::vector<std::string_view> profile_names(const AlgorithmInfo& algorithm) {
  std::vector<std::string_view> names{kDefaultProfile};
  for (const Profile& profile : algorithm.profiles) names.push_back(profile.name);
  return names;
}

}  // namespace

std::string number_text(double value) {
  char text[32];
  // People read 100000, not 1e+05; beyond 16 digits the exponent is the better text.
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-5 && size < 1e16);
  const auto end = std::to_chars(text, text + sizeof text, value,
                                 plain ? std::chars_format::fixed : std::chars_format::general);
  return {text, end.ptr};
}

bool is_whole_unit(std::string_view unit) {
  return unit == "flag" || unit == "count" || unit == "bytes";
}

const Profile* find_profile(const AlgorithmInfo& algorithm, std::string_view name) {
  for (const Profile& profile : algorithm.profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

double value_at(const ProfileValue& value, Rate link_rate) {
  if (value.per_bps == 0 || link_rate.bps == 0) return value.value;
  return value.value * (static_cast<double>(link_rate.bps) / value.per_bps);
}

ResolvedParams resolve_params(const AlgorithmInfo& algorithm, std::string_view profile,
                              std::span<const ParamOverride> overrides, const PortFacts& facts) {
  Checker checker(algorithm, facts);
  std::vector<double> values;
  for (const ParamSpec& spec : algorithm.params) values.push_back(spec.default_value);

  const auto set = [&](std::string_view name, double value) {
    const int index = find_param(algorithm.params, name);
    if (index < 0) {
      checker.unknown(ParamError::Kind::unknown_parameter, "parameter", name,
                      parameter_names(algorithm));
      return;
    }
    values[static_cast<std::size_t>(index)] = value;
  };
  if (!profile.empty() && profile != kDefaultProfile) {
    if (const Profile* found = find_profile(algorithm, profile)) {
      for (const ProfileValue& value : found->values) {
        set(value.name, value_at(value, facts.link_rate));
      }
    } else {
      checker.unknown(ParamError::Kind::unknown_profile, "profile", profile,
                      profile_names(algorithm));
    }
  }
  for (const ParamOverride& override_ : overrides) set(override_.name, override_.value);

  // Checked last, once each: an override may mend a profile value that does not fit this link.
  for (std::size_t i = 0; i < values.size(); ++i) checker.value(algorithm.params[i], values[i]);
  if (!checker.errors.empty()) return std::move(checker.errors);
  return values;
}

}  // namespace paceline::cc
