#include "control/daemon/tuner/tuner_orders.h"

#include <fmt/format.h>

#include <utility>

#include "dataplane/base/text/enum_text.h"

namespace paceline::daemon {

using boost::asio::awaitable;
using tuner::online::Order;
using tuner::online::Role;

namespace {

constexpr EnumTexts<3> kRoles{"champion", "incumbent", "candidate"};

}  // namespace

std::string_view role_name(Role role) { return enum_text(kRoles, role); }

Json json_of(const Order& order) {
  return {{"number", order.number},
          {"role", role_name(order.role)},
          {"values", order.values},
          {"name", order.name},
          {"reason", order.reason}};
}

std::optional<Order> order_of(const Json& json, std::size_t params) {
  if (!json.is_object()) return std::nullopt;
  Order out;
  try {
    out.number = json.at("number").get<std::uint64_t>();
    out.role =
        enum_value<Role>(kRoles, json.at("role").get<std::string>()).value_or(Role::champion);
    out.values = json.at("values").get<std::vector<double>>();
    out.name = json.at("name").get<std::string>();
    out.reason = json.at("reason").get<std::string>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (out.values.size() != params) return std::nullopt;
  return out;
}

Json values_by_name(const cc::AlgorithmInfo& info, const std::vector<double>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < info.params.size() && i < values.size(); ++i) {
    out[std::string(info.params[i].name)] = values[i];
  }
  return out;
}

std::vector<double> values_of_set(const cc::AlgorithmInfo& info, const ParamSet& set) {
  std::vector<double> out;
  for (const cc::ParamSpec& spec : info.params) {
    const auto at = set.values.find(std::string(spec.name));
    out.push_back(at == set.values.end() ? spec.default_value : at->second);
  }
  return out;
}

Json params_that_differ(const cc::AlgorithmInfo& info, const std::vector<double>& from,
                        const std::vector<double>& to) {
  Json out = Json::object();
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (from[i] != to[i]) out[std::string(info.params[i].name)] = to[i];
  }
  return out;
}

awaitable<TunedNics> nics_in_force(ControlClient& service,
                                   const config::AlgorithmCatalogue& catalogue) {
  TunedNics out;
  Json members = Json::object();
  const ControlAnswer answer = co_await service.call("parameters", std::move(members));
  if (!answer.ok()) co_return out;
  std::string error;
  out.nics = nic_params_of(answer.body, error);
  out.known = true;
  if (!error.empty() || out.nics.empty()) {
    out.trouble = error.empty() ? "the service has no NIC" : error;
    co_return out;
  }
  const NicParams& first = out.nics.front();
  if (catalogue.find(first.set.algorithm) == nullptr) {
    out.trouble =
        fmt::format("{} runs {}, which is not known here", first.nic, first.set.algorithm);
  }
  for (const NicParams& nic : out.nics) {
    if (nic.set.algorithm == first.set.algorithm && nic.set.values == first.set.values) continue;
    out.trouble = fmt::format("{} and {} have different parameters: NICs are tuned as one",
                              first.nic, nic.nic);
    break;
  }
  co_return out;
}

}  // namespace paceline::daemon
