// Typed access to the members of a JSON document that collects errors instead of stopping at the
// first: each names the source, the path of the member and what was expected. A getter that has
// reported an error returns an empty value, so that the caller reads on.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::experiment {

class JsonReader {
 public:
  using Json = nlohmann::json;

  // `source` (a file name) must outlive the reader.
  explicit JsonReader(std::string_view source) : source_(source) {}

  const std::vector<std::string>& errors() const { return errors_; }
  void error(const std::string& where, const std::string& what);

  // The member if it is there and has the type; otherwise an error and nullptr. `path` is that of
  // `object`, empty for the top level.
  const Json* member(const Json& object, const std::string& path, const char* key,
                     bool (*is_type)(const Json&), const char* expected);

  std::string string(const Json& object, const std::string& path, const char* key);
  double number(const Json& object, const std::string& path, const char* key);
  std::string one_of(const Json& object, const std::string& path, const char* key,
                     const std::vector<std::string>& allowed);
  std::uint64_t whole(const Json& object, const std::string& path, const char* key,
                      std::uint64_t least = 0,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  const Json& array(const Json& object, const std::string& path, const char* key);
  const Json& object(const Json& object, const std::string& path, const char* key);

  // Distinct strings, at least `least` of them and at most 10,000.
  std::vector<std::string> names(const Json& object, const std::string& path, const char* key,
                                 std::size_t least);

  // The object that a file holds; otherwise an error with its line and column. `expected` says what
  // file it should be.
  static config::Read<Json> document(std::string_view text, std::string_view source,
                                     std::string_view expected);
  // A discarded value if the text is not JSON, or is beyond the limits of base/text/json_limits.h.
  static Json parse(std::string_view text);

  static std::string_view kind_of(const Json& value);  // "an object", "a number", ...

 private:
  std::string_view source_;
  std::vector<std::string> errors_;
  const Json empty_array_ = Json::array();
  const Json empty_object_ = Json::object();
};

}  // namespace paceline::experiment
