#include "control/daemon/api/endpoint.h"

#include <cstdlib>
#include <utility>

namespace paceline::daemon {

std::string_view Request::in_path(std::string_view name) const {
  const auto at = path.find(name);
  return at == path.end() ? std::string_view{} : std::string_view(at->second);
}

std::string Request::in_query(std::string_view name, std::string_view otherwise) const {
  const auto at = query.find(name);
  return at == query.end() ? std::string(otherwise) : at->second;
}

double Request::number_in_query(std::string_view name, double otherwise) const {
  const auto at = query.find(name);
  return at == query.end() ? otherwise : std::strtod(at->second.c_str(), nullptr);
}

Reply refusal(unsigned status, std::vector<std::string> errors) {
  Reply reply;
  reply.status = status;
  reply.body = Json{{"errors", std::move(errors)}};
  return reply;
}

}  // namespace paceline::daemon
