// A TOML document as a tree in which every key and value remembers where it was written, so that
// tables can be merged and overridden and an error still points at the right line. The only border
// to toml++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

struct TomlMember;

struct TomlNode {
  enum class Type : std::uint8_t { boolean, integer, real, text, array, table, date };

  Type type = Type::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<TomlNode> items;      // array
  std::vector<TomlMember> members;  // table, sorted by key
  Where where;
  bool inherited = false;  // came from a table shared by several owners, or from an override

  const TomlMember* find(std::string_view key) const;
  TomlMember* find(std::string_view key);
  bool is_table() const { return type == Type::table; }
};

struct TomlMember {
  std::string key;
  Where where;
  TomlNode value;
};

// A node as text for messages: "a table", "the integer 7", "\"text\"".
std::string describe(const TomlNode& node);

// Parses `text`; `source` is the name used in errors. A syntax error is one error (the parser stops
// there).
Read<TomlNode> parse_toml(std::string_view text, const std::string& source);

// A value as given after `--set key=`: TOML if it reads as a number, boolean, quoted string or
// array, else the text itself (200kB and dcqcn need no quotes).
TomlNode parse_override_value(std::string_view text, const Where& where);

// Sets path (dotted key) under `root`, creating tables on the way; an error if a value is in the
// way.
std::string set_at(TomlNode& root, std::string_view path, TomlNode value);

// `over` laid over `base`: tables merge, anything else replaces.
void merge_into(TomlNode& base, const TomlNode& over);

void mark_inherited(TomlNode& node);

}  // namespace paceline::config
