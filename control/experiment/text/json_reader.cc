#include "control/experiment/text/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dataplane/base/text/json_limits.h"

namespace paceline::experiment {
namespace {

using Json = nlohmann::json;

std::string path_to(const std::string& path, const char* key) {
  return path.empty() ? key : fmt::format("{}.{}", path, key);
}

std::string shortened(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// ":line:column" of a byte.
std::string position_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  return fmt::format(":{}:{}", line, before.size() - (before.rfind('\n') + 1) + 1);
}

}  // namespace

config::Read<Json> JsonReader::document(std::string_view text, std::string_view source,
                                        std::string_view expected) {
  config::Read<Json> out;
  const auto fail = [&](std::string_view where, std::string_view what) {
    out.errors = {fmt::format("{}{}: {}", source, where, what)};
    return out;
  };
  if (const JsonExcess excess = json_excess(text)) {
    return fail(position_of(text, excess.at), excess.what);
  }
  try {
    out.value = Json::parse(text);
  } catch (const Json::parse_error& error) {
    // nlohmann counts bytes from 1 and names the one after which it gave up.
    return fail(position_of(text, error.byte == 0 ? 0 : error.byte - 1),
                fmt::format("not JSON, or cut off here; expected {}", expected));
  } catch (const Json::exception&) {
    return fail("", fmt::format("not usable JSON; expected {}", expected));
  }
  if (out.value.is_object()) return out;
  return fail(": top level", fmt::format("expected an object, found {}", kind_of(out.value)));
}

Json JsonReader::parse(std::string_view text) {
  if (json_excess(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

std::string_view JsonReader::kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

void JsonReader::error(const std::string& where, const std::string& what) {
  errors_.push_back(fmt::format("{}: {}: {}", source_, where, config::short_values(what)));
}

const Json* JsonReader::member(const Json& object, const std::string& path, const char* key,
                               bool (*is_type)(const Json&), const char* expected) {
  const auto found = object.find(key);
  if (found == object.end()) {
    error(path_to(path, key), fmt::format("missing; expected {}", expected));
    return nullptr;
  }
  if (!is_type(*found)) {
    error(path_to(path, key),
          fmt::format("expected {}, found {}: {}", expected, kind_of(*found), shortened(*found)));
    return nullptr;
  }
  return &*found;
}

std::string JsonReader::string(const Json& object, const std::string& path, const char* key) {
  const Json* value = member(
      object, path, key, [](const Json& v) { return v.is_string(); }, "a string");
  return value == nullptr ? std::string() : value->get<std::string>();
}

double JsonReader::number(const Json& object, const std::string& path, const char* key) {
  const Json* value = member(
      object, path, key, [](const Json& v) { return v.is_number(); }, "a number");
  return value == nullptr ? 0.0 : value->get<double>();
}

std::string JsonReader::one_of(const Json& object, const std::string& path, const char* key,
                               const std::vector<std::string>& allowed) {
  const std::size_t before = errors_.size();
  std::string value = string(object, path, key);
  if (errors_.size() == before &&
      std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    error(path_to(path, key), fmt::format("'{}' is none of: {}", value, fmt::join(allowed, ", ")));
  }
  return value;
}

std::uint64_t JsonReader::whole(const Json& object, const std::string& path, const char* key,
                                std::uint64_t least, std::uint64_t most) {
  const Json* value = member(
      object, path, key, [](const Json& v) { return v.is_number_unsigned(); },
      "a whole number of at least 0");
  if (value == nullptr) return least;
  const std::uint64_t number = value->get<std::uint64_t>();
  if (number < least || number > most) {
    error(path_to(path, key), fmt::format("{} is outside {}..{}", number, least, most));
    return least;
  }
  return number;
}

const Json& JsonReader::array(const Json& object, const std::string& path, const char* key) {
  const Json* value = member(
      object, path, key, [](const Json& v) { return v.is_array(); }, "an array");
  return value == nullptr ? empty_array_ : *value;
}

const Json& JsonReader::object(const Json& object, const std::string& path, const char* key) {
  const Json* value = member(
      object, path, key, [](const Json& v) { return v.is_object(); }, "an object");
  return value == nullptr ? empty_object_ : *value;
}

std::vector<std::string> JsonReader::names(const Json& object, const std::string& path,
                                           const char* key, std::size_t least) {
  constexpr std::size_t kMost = 10'000;  // each is compared with all
  std::vector<std::string> result;
  const std::size_t before = errors_.size();
  const Json& given = array(object, path, key);
  if (given.size() > kMost) {
    error(path_to(path, key), fmt::format("{} given, at most {} allowed", given.size(), kMost));
    return result;
  }
  for (const Json& item : given) {
    const std::string where = fmt::format("{}[{}]", path_to(path, key), result.size());
    if (!item.is_string()) {
      error(where, fmt::format("expected a string, found {}", kind_of(item)));
      return result;
    }
    std::string name = item.get<std::string>();
    if (std::find(result.begin(), result.end(), name) != result.end()) {
      error(where, fmt::format("'{}' occurs twice", name));
    }
    result.push_back(std::move(name));
  }
  if (errors_.size() == before && result.size() < least) {
    error(path_to(path, key), fmt::format("{} given, at least {} needed", result.size(), least));
  }
  return result;
}

}  // namespace paceline::experiment
