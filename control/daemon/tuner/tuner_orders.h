// Orders of the tuner as the store has them, and what a service runs as the tuner needs to know it:
// values in the order of the algorithm's table, the same on all NICs.
#pragma once

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/daemon/parameters/parameter_sets.h"
#include "control/daemon/service_link/control_client.h"
#include "control/tuner/online/tuner.h"

namespace paceline::daemon {

std::string_view role_name(tuner::online::Role role);
Json json_of(const tuner::online::Order& order);
// Nothing if it is not an order, or has another number of parameters.
std::optional<tuner::online::Order> order_of(const Json& json, std::size_t params);

std::vector<double> values_of_set(const cc::AlgorithmInfo& info, const ParamSet& set);
Json values_by_name(const cc::AlgorithmInfo& info, const std::vector<double>& values);
Json params_that_differ(const cc::AlgorithmInfo& info, const std::vector<double>& from,
                        const std::vector<double>& to);

struct TunedNics {
  bool known = false;
  std::vector<NicParams> nics;
  std::string trouble;  // not the same on all NICs, or nothing that is known here
};
boost::asio::awaitable<TunedNics> nics_in_force(ControlClient& service,
                                                const config::AlgorithmCatalogue& catalogue);

}  // namespace paceline::daemon
