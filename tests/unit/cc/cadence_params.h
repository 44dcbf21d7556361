// cadence as shipped, on a port of 100 Gb/s.
#pragma once

#include <vector>

#include "cc/cadence/cadence.h"

namespace paceline::cc {

inline CadenceParams cadence_params_100g() {
  std::vector<double> values;
  for (const ParamSpec& spec : cadence_param_specs()) values.push_back(spec.default_value);
  return make_cadence_params(values, PortFacts{rate_from_gbps(100), 4096, 4170, 4680});
}

}  // namespace paceline::cc
