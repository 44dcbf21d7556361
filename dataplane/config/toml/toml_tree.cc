#include "dataplane/config/toml/toml_tree.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <utility>

#include "dataplane/config/toml/toml_guard.h"

namespace paceline::config {

namespace {

Where at(const toml::source_region& region, const std::string& source) {
  return {source, region.begin.line, region.begin.column};
}

// Past the depth limit the tree is cut and an error says where.
TomlNode convert(const toml::node& in, const std::string& source, std::size_t depth,
                 Diagnostics& errors) {
  TomlNode out;
  out.where = at(in.source(), source);
  if (depth > kDeepestToml) {
    errors.add(out.where, fmt::format("nested deeper than {} levels", kDeepestToml));
    return out;
  }
  switch (in.type()) {
    case toml::node_type::boolean:
      out.type = TomlNode::Type::boolean;
      out.boolean = in.as_boolean()->get();
      break;
    case toml::node_type::integer:
      out.type = TomlNode::Type::integer;
      out.integer = in.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      out.type = TomlNode::Type::real;
      out.real = in.as_floating_point()->get();
      break;
    case toml::node_type::string:
      out.type = TomlNode::Type::text;
      out.text = in.as_string()->get();
      break;
    case toml::node_type::array:
      out.type = TomlNode::Type::array;
      for (const toml::node& item : *in.as_array()) {
        out.items.push_back(convert(item, source, depth + 1, errors));
      }
      break;
    case toml::node_type::table:
      out.type = TomlNode::Type::table;
      for (const auto& [key, value] : *in.as_table()) {
        out.members.push_back({std::string(key.str()), at(key.source(), source),
                               convert(value, source, depth + 1, errors)});
      }
      break;
    default:
      out.type = TomlNode::Type::date;
      break;
  }
  return out;
}

}  // namespace

const TomlMember* TomlNode::find(std::string_view key) const {
  for (const TomlMember& m : members) {
    if (m.key == key) return &m;
  }
  return nullptr;
}

TomlMember* TomlNode::find(std::string_view key) {
  return const_cast<TomlMember*>(std::as_const(*this).find(key));
}

std::string describe(const TomlNode& node) {
  switch (node.type) {
    case TomlNode::Type::boolean:
      return node.boolean ? "true" : "false";
    case TomlNode::Type::integer:
      return fmt::format("{}", node.integer);
    case TomlNode::Type::real:
      return fmt::format("{}", node.real);
    case TomlNode::Type::text:
      return fmt::format("\"{}\"", node.text);
    case TomlNode::Type::array:
      return "an array";
    case TomlNode::Type::table:
      return "a table";
    case TomlNode::Type::date:
      break;
  }
  return "a date or time of day";
}

Read<TomlNode> parse_toml(std::string_view text, const std::string& source) {
  Read<TomlNode> out;
  Diagnostics errors;
  if (check_toml_text(text, source, errors)) {
    try {
      const toml::table table = toml::parse(text, source);
      out.value = convert(table, source, 0, errors);
    } catch (const toml::parse_error& e) {
      errors.add(at(e.source(), source), fmt::format("not valid TOML: {}", e.description()));
    }
  }
  out.errors = errors.sorted();
  return out;
}

TomlNode parse_override_value(std::string_view text, const Where& where) {
  TomlNode out;
  Diagnostics ignored;
  const std::string document = fmt::format("value = {}", text);
  // The value must be one line, and no more than the parser can bear; everything else is plain
  // text.
  const bool one_line = document.find_first_of("\n\r") == std::string::npos;
  if (one_line && check_toml_text(document, where.source, ignored)) {
    try {
      const toml::table table = toml::parse(document);
      const toml::node* value = table.get("value");
      if (table.size() == 1 && value != nullptr) out = convert(*value, where.source, 0, ignored);
    } catch (const toml::parse_error&) {
      // Not TOML: the text itself, below.
    }
  }
  if (out.type == TomlNode::Type::table || out.type == TomlNode::Type::date) {
    out = TomlNode{};
    out.type = TomlNode::Type::text;
    out.text = std::string(text);
  }
  out.where = where;
  for (TomlNode& item : out.items) item.where = where;
  return out;
}

std::string set_at(TomlNode& root, std::string_view path, TomlNode value) {
  if (static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) >= kDeepestToml) {
    return fmt::format("\"{}...\" is nested deeper than {} levels", path.substr(0, 40),
                       kDeepestToml);
  }
  TomlNode* node = &root;
  const Where where = value.where;
  for (std::string_view rest = path;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view key = rest.substr(0, dot);
    if (key.empty()) return fmt::format("\"{}\" is not a key (a part of it is empty)", path);
    TomlMember* member = node->find(key);
    if (member == nullptr) {
      const auto place = std::find_if(node->members.begin(), node->members.end(),
                                      [&](const TomlMember& m) { return m.key > key; });
      TomlMember fresh{std::string(key), where, {}};
      fresh.value.where = where;
      member = &*node->members.insert(place, std::move(fresh));
    }
    if (dot == std::string_view::npos) {
      if (member->value.is_table() && !member->value.members.empty()) {
        return fmt::format("\"{}\" is a table; name one of its keys", path);
      }
      member->where = where;
      member->value = std::move(value);
      return {};
    }
    if (!member->value.is_table()) {
      return fmt::format("\"{}\" is a value, not a table",
                         path.substr(0, path.size() - rest.size() + dot));
    }
    node = &member->value;
    rest.remove_prefix(dot + 1);
  }
}

void merge_into(TomlNode& base, const TomlNode& over) {
  if (!base.is_table() || !over.is_table()) {
    base = over;
    return;
  }
  base.where = over.where;
  for (const TomlMember& m : over.members) {
    if (TomlMember* mine = base.find(m.key)) {
      mine->where = m.where;
      merge_into(mine->value, m.value);
    } else {
      base.members.push_back(m);
    }
  }
  std::sort(base.members.begin(), base.members.end(),
            [](const TomlMember& a, const TomlMember& b) { return a.key < b.key; });
}

void mark_inherited(TomlNode& node) {
  node.inherited = true;
  for (TomlNode& item : node.items) mark_inherited(item);
  for (TomlMember& m : node.members) mark_inherited(m.value);
}

}  // namespace paceline::config
