#include "control/league/plan/settings_text.h"

#include <fmt/format.h>

namespace paceline::league {

namespace {

using config::TomlNode;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string word_of(const TomlNode& node, bool inside) {
  switch (node.type) {
    case TomlNode::Type::boolean:
      return node.boolean ? "true" : "false";
    case TomlNode::Type::integer:
      return fmt::format("{}", node.integer);
    case TomlNode::Type::real: {
      std::string text = fmt::format("{}", node.real);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
    case TomlNode::Type::text: {
      // Bare where it reads back as text: 200kB, dcqcn.
      const TomlNode back = config::parse_override_value(node.text, node.where);
      const bool bare = back.type == TomlNode::Type::text && back.text == node.text;
      return bare && !inside ? node.text : quoted(node.text);
    }
    case TomlNode::Type::array: {
      std::string out = "[";
      for (const TomlNode& item : node.items) {
        out += (out.size() > 1 ? ", " : "") + word_of(item, true);
      }
      return out + "]";
    }
    case TomlNode::Type::table: {
      std::string out = "{";
      for (const config::TomlMember& m : node.members) {
        out += (out.size() > 1 ? ", " : " ") + m.key + " = " + word_of(m.value, true);
      }
      return out + " }";
    }
    case TomlNode::Type::date:
      return quoted(node.text);  // no key takes one: the reader says so
  }
  return {};
}

void collect(const TomlNode& table, const std::string& path, std::vector<std::string>& out) {
  for (const config::TomlMember& m : table.members) {
    const std::string key = path.empty() ? m.key : path + "." + m.key;
    if (m.value.is_table()) {
      collect(m.value, key, out);
    } else {
      out.push_back(key + "=" + word_of(m.value, false));
    }
  }
}

}  // namespace

std::vector<std::string> settings_of(const TomlNode& table) {
  std::vector<std::string> out;
  collect(table, "", out);
  return out;
}

}  // namespace paceline::league
