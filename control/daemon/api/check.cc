#include "control/daemon/api/check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>

#include "cc/nearest_name.h"
#include "control/daemon/api/target.h"

namespace paceline::daemon {

namespace {

constexpr double kMostWhole = 9007199254740992.0;  // 2^53: up to here a double holds each

std::string number_words(double value) { return Json(value).dump(); }

std::string bound_words(double value) {
  const bool whole = std::abs(value) <= kMostWhole && value == std::floor(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : number_words(value);
}

std::string complaint(std::string_view where, const Field& field, const std::string& value) {
  return std::string(where) + "." + field.name + ": " + value +
         "; allowed: " + allowed_words(field);
}

bool in_range(const Field& field, double value) {
  return !(field.most > field.least) || (value >= field.least && value <= field.most);
}

bool is_choice(const Field& field, std::string_view value) {
  return field.one_of.empty() ||
         std::find(field.one_of.begin(), field.one_of.end(), value) != field.one_of.end();
}

// The whole text is a number, in the notation of JSON or nearly.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string unknown(std::string_view where, std::string_view kind, std::string_view name,
                    const std::vector<Field>& fields) {
  std::vector<std::string_view> names;
  for (const Field& field : fields) names.push_back(field.name);
  std::string error = std::string(where) + ": unknown " + std::string(kind) + " " + in_quotes(name);
  if (names.empty()) return error + "; there are none here";
  const std::string_view nearest =
      cc::nearest_name(name, names, std::max<std::size_t>(2, name.size() / 3));
  if (!nearest.empty()) return error + "; did you mean \"" + std::string(nearest) + "\"?";
  error += "; known:";
  for (const std::string_view known : names) error += " " + std::string(known);
  return error;
}

const Field* field_of(const std::vector<Field>& fields, std::string_view name) {
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const Field& field) { return field.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

std::string short_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

bool has_type(const Field& field, Json& value) {
  switch (field.type) {
    case FieldType::text:
      // A NUL would end the text for whoever hands it on.
      return value.is_string() &&
             value.get_ref<const std::string&>().find('\0') == std::string::npos;
    case FieldType::whole: {
      if (value.is_number_integer()) return true;
      if (!value.is_number_float()) return false;
      const double number = value.get<double>();
      if (!(std::abs(number) <= kMostWhole) || number != std::floor(number)) return false;
      value = static_cast<std::int64_t>(number);
      return true;
    }
    case FieldType::number:
      return value.is_number() && std::isfinite(value.get<double>());
    case FieldType::flag:
      return value.is_boolean();
    case FieldType::object:
      return value.is_object();
    case FieldType::list:
      return value.is_array();
  }
  return false;
}

bool holds(const Field& field, Json& value) {
  if (!has_type(field, value)) return false;
  if (field.type == FieldType::text) return is_choice(field, value.get_ref<std::string&>());
  return !value.is_number() || in_range(field, value.get<double>());
}

}  // namespace

std::string_view type_words(FieldType type) {
  switch (type) {
    case FieldType::text:
      return "text";
    case FieldType::whole:
      return "whole number";
    case FieldType::number:
      return "number";
    case FieldType::flag:
      return "true or false";
    case FieldType::object:
      return "object";
    case FieldType::list:
      return "list";
  }
  return "text";
}

std::string allowed_words(const Field& field) {
  if (!field.one_of.empty()) {
    std::string words = "one of";
    for (const std::string& choice : field.one_of) {
      words += (words == "one of" ? " " : ", ") + choice;
    }
    return words;
  }
  std::string words(type_words(field.type));
  if (field.most > field.least) {
    words += " from " + bound_words(field.least) + " to " + bound_words(field.most);
  }
  return words;
}

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
  if (!good) errors.push_back(complaint(where, field, in_quotes(value)));
}

void check_query(const std::vector<Field>& fields,
                 const std::vector<std::pair<std::string, std::string>>& given, Request& request,
                 std::vector<std::string>& errors) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : given) {
    const Field* field = field_of(fields, name);
    if (field == nullptr) {
      errors.push_back(unknown("query", "parameter", name, fields));
    } else if (!seen.insert(name).second) {
      errors.push_back("query." + name + ": given twice; allowed: once");
    } else {
      check_text(*field, value, "query", errors);
      request.query.insert_or_assign(name, value);
    }
  }
  for (const Field& field : fields) {
    if (field.required && !seen.contains(field.name)) {
      errors.push_back(complaint("query", field, "missing"));
    }
  }
}

void check_body(const std::vector<Field>& fields, Json& body, std::vector<std::string>& errors) {
  if (!body.is_object()) {
    errors.push_back("body: " + short_json(body) + "; allowed: an object");
    return;
  }
  for (auto& [name, value] : body.items()) {
    const Field* field = field_of(fields, name);
    if (field == nullptr) {
      errors.push_back(unknown("body", "member", name, fields));
    } else if (!holds(*field, value)) {
      errors.push_back(complaint("body", *field, short_json(value)));
    }
  }
  for (const Field& field : fields) {
    if (field.required && !body.contains(field.name)) {
      errors.push_back(complaint("body", field, "missing"));
    }
  }
}

}  // namespace paceline::daemon
