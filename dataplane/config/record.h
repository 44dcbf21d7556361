// Members of a JSON record, as a table: name, type, range and meaning of each. Requests to the
// daemon's API and to the service are checked against such tables, and the reference of the API is
// made from them. Each error names the path, the value and what is allowed; all errors are reported
// at once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::config {

enum class FieldType : std::uint8_t { text, whole, number, flag, object, list };

struct RecordField {
  std::string name{};
  FieldType type = FieldType::text;
  bool required = false;
  std::string meaning{};
  std::vector<std::string> one_of{};  // of a text; empty: any
  // Where most > least: the range of a number, of a text's length, or of a list's size.
  double least = 0;
  double most = 0;
  // For an object its members, or one without a name for members of any name; for a list one field,
  // for its entries. Empty: anything.
  std::vector<RecordField> of{};
  bool each_once = false;  // no text is twice in a list
  bool or_null = false;
};

// How a type is called in messages and in the reference: "text", "whole number", ...
std::string_view type_words(FieldType type);
// The allowed values of a field as text: "whole number from 1 to 64", "one of a, b".
std::string allowed_words(const RecordField& field);

// "PATH: value; allowed: ...".
std::string complaint(std::string_view path, std::string_view value, std::string_view allowed);
// "WHERE: unknown member "x"; did you mean "y"?"; `where` may be empty.
std::string unknown_name(std::string_view where, std::string_view kind, std::string_view name,
                         const std::vector<RecordField>& fields);
bool in_range(const RecordField& field, double value);
bool is_choice(const RecordField& field, std::string_view value);

// The members of a record, which is at `path`; empty: the root. A whole number may be written 5.0
// or 5e3; it is an integer afterwards.
void check_record(const std::vector<RecordField>& fields, nlohmann::json& record,
                  const std::string& path, std::vector<std::string>& errors);

}  // namespace paceline::config
