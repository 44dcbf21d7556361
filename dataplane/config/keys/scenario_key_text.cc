// Keys in words: for errors and for the reference page.

#include <fmt/format.h>

#include <type_traits>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

// A size as one would write it for this key: small ones of *_bytes keys are bare integers.
std::string size_text(const KeySpec& key, std::uint64_t bytes) {
  return key.path.ends_with("_bytes") && bytes < 10'000 ? fmt::format("{}", bytes)
                                                        : format_bytes(bytes);
}

std::string base_text(const KeySpec& key, const Field& field, double value) {
  const auto whole = static_cast<std::uint64_t>(value);
  if (std::holds_alternative<Picos*>(field)) return format_time({static_cast<std::int64_t>(value)});
  if (std::holds_alternative<Rate*>(field)) return format_rate({whole});
  if (key.form == Form::bytes) return size_text(key, whole);
  if (std::holds_alternative<double*>(field)) return fmt::format("{}", value);
  return fmt::format("{}", whole);
}

}  // namespace

std::string allowed_text(const KeySpec& key, const Field& field) {
  if (key.form == Form::choice) return list_names(key.choices);
  if (key.min == 0 && key.max == 0) return "";
  return fmt::format("{}{} .. {}]", key.open_min ? "(" : "[", base_text(key, field, key.min),
                     base_text(key, field, key.max));
}

std::string_view type_text(const KeySpec& key, const Field& field) {
  if (key.form == Form::bytes) return key.path.ends_with("_bytes") ? "size or integer" : "size";
  if (key.form == Form::choice) return "choice";
  if (key.form == Form::path) return "file";
  if (std::holds_alternative<bool*>(field)) return "boolean";
  if (std::holds_alternative<double*>(field)) return "number";
  if (std::holds_alternative<Picos*>(field)) return "time";
  if (std::holds_alternative<Rate*>(field)) return "rate";
  if (std::holds_alternative<std::string*>(field)) return "text";
  if (std::holds_alternative<std::vector<std::uint32_t>*>(field)) return "array of integers";
  return "integer";
}

std::string value_text(const KeySpec& key, const Field& field) {
  const bool bytes = key.form == Form::bytes;
  return std::visit(
      [&](auto* p) -> std::string {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, bool>) {
          return *p ? "true" : "false";
        } else if constexpr (std::is_same_v<T, Picos>) {
          return *p == kNever ? "none" : fmt::format("\"{}\"", format_time(*p));
        } else if constexpr (std::is_same_v<T, Rate>) {
          return p->bps == 0 ? "none" : fmt::format("\"{}\"", format_rate(*p));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return p->empty() ? "none" : fmt::format("\"{}\"", *p);
        } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
          return "[]";
        } else if constexpr (std::is_same_v<T, double>) {
          return fmt::format("{}", *p);
        } else {
          if (!bytes) return fmt::format("{}", *p);
          const std::string text = size_text(key, *p);
          return text.back() == 'B' ? fmt::format("\"{}\"", text) : text;
        }
      },
      field);
}

}  // namespace paceline::config
