// The reference of docs/api.md, from the table of endpoints.
#include <map>
#include <string>
#include <vector>

#include "control/daemon/api/check.h"
#include "control/daemon/api/openapi.h"
#include "control/daemon/api/router.h"

namespace paceline::daemon {

namespace {

// A cell of a table: no bars.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

void add_rows(const std::vector<Field>& fields, const char* place, std::string& out) {
  for (const Field& field : fields) {
    const bool required = field.required || std::string_view(place) == "path";
    out += "| `" + field.name + "` | " + place + (required ? ", required" : "") + " | " +
           cell(config::allowed_words(field)) + " | " + cell(field.meaning) + " |\n";
  }
}

std::string entry(const Endpoint& endpoint) {
  std::string out = "### `" + endpoint.method + " " + endpoint.path + "`\n\n" + endpoint.summary +
                    "." + (endpoint.writes ? " Needs the right to write." : "") + "\n";
  std::string rows;
  add_rows(endpoint.path_fields, "path", rows);
  add_rows(endpoint.query, "query", rows);
  add_rows(endpoint.body, "body", rows);
  if (!rows.empty()) out += "\n| name | where | allowed | meaning |\n|---|---|---|---|\n" + rows;
  if (!endpoint.answer.empty()) out += "\nAnswer: " + endpoint.answer + "\n";
  return out + "\n";
}

}  // namespace

std::string api_reference(const Endpoints& endpoints) {
  const Router router(endpoints);
  std::vector<std::string> tags;
  std::map<std::string, std::string> entries;
  for (const Endpoint& endpoint : router.endpoints()) {
    std::string& text = entries[endpoint.tag];
    if (text.empty()) tags.push_back(endpoint.tag);
    text += entry(endpoint);
  }
  std::string out;
  for (const std::string& tag : tags) out += "## " + tag + "\n\n" + entries[tag];
  return out;
}

}  // namespace paceline::daemon
