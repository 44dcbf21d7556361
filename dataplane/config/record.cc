#include "dataplane/config/record.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "cc/nearest_name.h"
#include "dataplane/base/text/printable.h"

namespace paceline::config {

using Json = nlohmann::json;

namespace {

constexpr double kMostWhole = 9007199254740992.0;  // 2^53: up to here a double holds each

std::string bound_words(double value) {
  const bool whole = std::abs(value) <= kMostWhole && value == std::floor(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : Json(value).dump();
}

std::string short_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

std::string member_of(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

bool is_text(const RecordField& field, const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  // A NUL would end the text for code that passes it on as a C string.
  if (text.find('\0') != std::string::npos || !is_choice(field, text)) return false;
  return in_range(field, static_cast<double>(text.size()));
}

bool is_whole(const RecordField& field, Json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!(std::abs(number) <= kMostWhole) || number != std::floor(number)) return false;
    value = static_cast<std::int64_t>(number);
  }
  return value.is_number_integer() && in_range(field, value.get<double>());
}

bool all_differ(const Json& list) {
  std::set<std::string_view> seen;
  return std::all_of(list.begin(), list.end(), [&](const Json& entry) {
    return !entry.is_string() || seen.insert(entry.get_ref<const std::string&>()).second;
  });
}

// The value itself, not what is in it.
bool holds(const RecordField& field, Json& value) {
  if (value.is_null()) return field.or_null;
  switch (field.type) {
    case FieldType::text:
      return is_text(field, value);
    case FieldType::whole:
      return is_whole(field, value);
    case FieldType::number:
      return value.is_number() && std::isfinite(value.get<double>()) &&
             in_range(field, value.get<double>());
    case FieldType::flag:
      return value.is_boolean();
    case FieldType::object:
      return value.is_object();
    case FieldType::list:
      return value.is_array() && in_range(field, static_cast<double>(value.size()));
  }
  return false;
}

void check_value(const RecordField& field, Json& value, const std::string& path,
                 std::vector<std::string>& errors) {
  if (!holds(field, value)) {
    errors.push_back(complaint(path, short_json(value), allowed_words(field)));
  } else if (value.is_array() && !field.of.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      check_value(field.of.front(), value[i], path + "[" + std::to_string(i) + "]", errors);
    }
    if (field.each_once && !all_differ(value)) {
      errors.push_back(complaint(path, "a list that names one twice", "each once"));
    }
  } else if (value.is_object() && !field.of.empty()) {
    if (!field.of.front().name.empty()) return check_record(field.of, value, path, errors);
    for (auto& [name, entry] : value.items()) {
      check_value(field.of.front(), entry, member_of(path, printable(name)), errors);
    }
  }
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

std::string allowed_words(const RecordField& field) {
  if (!field.one_of.empty()) {
    std::string words = "one of";
    for (const std::string& choice : field.one_of) {
      words += (words == "one of" ? " " : ", ") + choice;
    }
    return words;
  }
  std::string words(type_words(field.type));
  if (field.most > field.least) {
    const std::string range = bound_words(field.least) + " to " + bound_words(field.most);
    const bool of_many = field.type == FieldType::text || field.type == FieldType::list;
    words += (of_many ? " of " : " from ") + range;
    if (field.type == FieldType::text) words += " characters";
  }
  if (field.type == FieldType::list && !field.of.empty()) {
    words += " entries, each a " + allowed_words(field.of.front());
  }
  return field.or_null ? words + ", or null" : words;
}

bool in_range(const RecordField& field, double value) {
  return !(field.most > field.least) || (value >= field.least && value <= field.most);
}

bool is_choice(const RecordField& field, std::string_view value) {
  return field.one_of.empty() ||
         std::find(field.one_of.begin(), field.one_of.end(), value) != field.one_of.end();
}

std::string complaint(std::string_view path, std::string_view value, std::string_view allowed) {
  return std::string(path) + ": " + std::string(value) + "; allowed: " + std::string(allowed);
}

std::string unknown_name(std::string_view where, std::string_view kind, std::string_view name,
                         const std::vector<RecordField>& fields) {
  std::vector<std::string_view> names;
  for (const RecordField& field : fields) names.push_back(field.name);
  std::string error = where.empty() ? std::string() : std::string(where) + ": ";
  error += "unknown " + std::string(kind) + " " + in_quotes(name);
  if (names.empty()) return error + "; there are none here";
  const std::string_view nearest =
      cc::nearest_name(name, names, std::max<std::size_t>(2, name.size() / 3));
  if (!nearest.empty()) return error + "; did you mean \"" + std::string(nearest) + "\"?";
  error += "; known:";
  for (const std::string_view known : names) error += " " + std::string(known);
  return error;
}

void check_record(const std::vector<RecordField>& fields, Json& record, const std::string& path,
                  std::vector<std::string>& errors) {
  for (auto& [name, value] : record.items()) {
    const auto field =
        std::find_if(fields.begin(), fields.end(),
                     [&name = name](const RecordField& f) { return f.name == name; });
    if (field == fields.end()) {
      errors.push_back(unknown_name(path, "member", name, fields));
    } else {
      check_value(*field, value, member_of(path, name), errors);
    }
  }
  for (const RecordField& field : fields) {
    if (field.required && !record.contains(field.name)) {
      errors.push_back(complaint(member_of(path, field.name), "missing", allowed_words(field)));
    }
  }
}

}  // namespace paceline::config
