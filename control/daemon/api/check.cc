#include "control/daemon/api/check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>

#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

using config::in_range;
using config::is_choice;

std::string refused(std::string_view where, const Field& field, std::string_view value) {
  return config::complaint(std::string(where) + "." + field.name, value,
                           config::allowed_words(field));
}

// The whole text is a number, in the notation of JSON or nearly.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

const Field* field_of(const std::vector<Field>& fields, std::string_view name) {
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const Field& field) { return field.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

}  // namespace

void check_text(const Field& field, std::string_view value, std::string_view where,
                std::vector<std::string>& errors) {
  bool good = false;
  switch (field.type) {
    case FieldType::text:
      good = !(value.empty() && field.required) && is_choice(field, value);
      break;
    case FieldType::whole: {
      std::int64_t number = 0;
      good = read_number(value, number) && in_range(field, static_cast<double>(number));
      break;
    }
    case FieldType::number: {
      double number = 0;
      good = read_number(value, number) && std::isfinite(number) && in_range(field, number);
      break;
    }
    case FieldType::flag:
      good = value == "true" || value == "false";
      break;
    case FieldType::object:
    case FieldType::list:
      break;  // no endpoint has them here: Router refuses its description
  }
  if (!good) errors.push_back(refused(where, field, in_quotes(value)));
}

void check_query(const std::vector<Field>& fields,
                 const std::vector<std::pair<std::string, std::string>>& given, Request& request,
                 std::vector<std::string>& errors) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : given) {
    const Field* field = field_of(fields, name);
    if (field == nullptr) {
      errors.push_back(config::unknown_name("query", "parameter", name, fields));
    } else if (!seen.insert(name).second) {
      errors.push_back("query." + name + ": given twice; allowed: once");
    } else {
      check_text(*field, value, "query", errors);
      request.query.insert_or_assign(name, value);
    }
  }
  for (const Field& field : fields) {
    if (field.required && !seen.contains(field.name)) {
      errors.push_back(refused("query", field, "missing"));
    }
  }
}

void check_body(const std::vector<Field>& fields, Json& body, std::vector<std::string>& errors) {
  if (!body.is_object()) {
    errors.push_back(
        config::complaint("body", body.is_array() ? "a list" : body.dump(), "an object"));
    return;
  }
  config::check_record(fields, body, "body", errors);
}

}  // namespace paceline::daemon
