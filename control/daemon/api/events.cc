#include "control/daemon/api/events.h"

#include <algorithm>

#include "cc/nearest_name.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/text/comma_list.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

std::string read_topics(std::string_view list, std::vector<std::string>& out) {
  out.clear();
  if (list.empty()) {
    out.assign(kTopics.begin(), kTopics.end());
    return {};
  }
  for (const std::string_view topic : comma_list(list)) {
    if (std::find(kTopics.begin(), kTopics.end(), topic) == kTopics.end()) {
      std::string error = "query.topics: " + in_quotes(topic) + "; allowed: some of";
      for (const std::string_view known : kTopics) error += " " + std::string(known);
      const std::string_view nearest = cc::nearest_name(topic, kTopics, 3);
      if (!nearest.empty()) error += "; did you mean \"" + std::string(nearest) + "\"?";
      return error;
    }
    out.emplace_back(topic);
  }
  return {};
}

}  // namespace paceline::daemon
