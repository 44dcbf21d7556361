#include "dataplane/config/scenario/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <type_traits>
#include <utility>

#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

using Type = TomlNode::Type;

// How to write a value of the key, for "expected ..." messages.
std::string expectation(const KeySpec& key, const Field& field) {
  if (key.form == Form::choice) return list_names(key.choices);
  if (key.form == Form::path) return "a file name in quotes";
  if (key.form == Form::bytes) {
    return fmt::format("a size such as \"400kB\" (units {}){}", byte_units(),
                       key.path.ends_with("_bytes") ? ", or an integer" : "");
  }
  if (std::holds_alternative<bool*>(field)) return "true or false";
  if (std::holds_alternative<double*>(field)) return "a number";
  if (std::holds_alternative<Picos*>(field)) {
    return fmt::format("a time such as \"1us\" (units {})", time_units());
  }
  if (std::holds_alternative<Rate*>(field)) {
    return fmt::format("a rate such as \"100Gb/s\" (units {})", rate_units());
  }
  if (std::holds_alternative<std::string*>(field)) return "a text in quotes";
  if (std::holds_alternative<std::vector<std::uint32_t>*>(field)) return "an array of integers";
  return "an integer";
}

class ValueReader {
 public:
  ValueReader(const KeySpec& key, const Field& field, const TomlNode& node, ReadContext& context)
      : key_(key), field_(field), node_(node), context_(context) {}

  bool read() {
    return std::visit([&](auto* target) { return into(target); }, field_);
  }

 private:
  bool fail(const TomlNode& node, const std::string& why) {
    context_.errors->add(node.where, fmt::format("{} = {}: {}", key_.path, describe(node), why));
    return false;
  }
  bool wrong_type(const TomlNode& node) {
    return fail(node, fmt::format("expected {}", expectation(key_, field_)));
  }
  // Bounds compare as doubles: exact below 2^53, and nothing here has a bound near a larger value.
  bool in_range(const TomlNode& node, double value) {
    if (key_.min == 0 && key_.max == 0) return true;
    const bool low = key_.open_min ? value <= key_.min : value < key_.min;
    if (!low && !(value > key_.max)) return true;
    return fail(node, fmt::format("out of range, allowed is {}", allowed_text(key_, field_)));
  }

  bool into(bool* target) {
    if (node_.type != Type::boolean) return wrong_type(node_);
    *target = node_.boolean;
    return true;
  }

  bool into(double* target) {
    double value = 0;
    if (node_.type == Type::integer) {
      value = static_cast<double>(node_.integer);
    } else if (node_.type == Type::real) {
      value = node_.real;
    } else {
      return wrong_type(node_);
    }
    if (!std::isfinite(value)) return fail(node_, "expected a finite number");
    if (!in_range(node_, value)) return false;
    *target = value;
    return true;
  }

  bool into(Picos* target) {
    if (node_.type != Type::text) return wrong_type(node_);
    const auto parsed = parse_time(node_.text);
    if (!parsed.ok()) return fail(node_, parsed.error);
    if (!in_range(node_, static_cast<double>(parsed.value.count))) return false;
    *target = parsed.value;
    return true;
  }

  bool into(Rate* target) {
    if (node_.type != Type::text) return wrong_type(node_);
    const auto parsed = parse_rate(node_.text);
    if (!parsed.ok()) return fail(node_, parsed.error);
    if (!in_range(node_, static_cast<double>(parsed.value.bps))) return false;
    *target = parsed.value;
    return true;
  }

  bool into(std::string* target) {
    if (node_.type != Type::text) return wrong_type(node_);
    if (key_.form == Form::choice) return choice(target);
    if (key_.form == Form::path) return file(target);
    if (key_.name() == "name" && !valid_name(node_.text)) {
      return fail(node_, "expected a name of letters, digits, \"-\" and \"_\", at most 64");
    }
    *target = node_.text;
    return true;
  }

  static bool valid_name(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
  }

  bool choice(std::string* target) {
    if (std::find(key_.choices.begin(), key_.choices.end(), node_.text) != key_.choices.end()) {
      *target = node_.text;
      return true;
    }
    const std::string_view near = nearest_name(node_.text, key_.choices);
    const std::string hint = near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near);
    return fail(node_, fmt::format("{}allowed is {}", hint, list_names(key_.choices)));
  }

  bool file(std::string* target) {
    if (node_.text.empty()) return fail(node_, "expected a file name");
    // An override comes from the shell, so it is relative to where the shell is.
    const bool from_document = node_.where.line != 0;
    const std::filesystem::path path(node_.text);
    *target = from_document && path.is_relative() && !context_.folder.empty()
                  ? (std::filesystem::path(context_.folder) / path).lexically_normal().string()
                  : node_.text;
    return true;
  }

  bool into(std::vector<std::uint32_t>* target) {
    if (node_.type != Type::array) return wrong_type(node_);
    std::vector<std::uint32_t> values;
    bool good = true;
    for (const TomlNode& item : node_.items) {
      if (item.type != Type::integer) {
        good = wrong_type(item);
      } else if (!in_range(item, static_cast<double>(item.integer))) {
        good = false;
      } else {
        values.push_back(static_cast<std::uint32_t>(item.integer));
      }
    }
    if (good) *target = std::move(values);
    return good;
  }

  template <class T>
  requires std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>
  bool into(T* target) {
    std::uint64_t value = 0;
    if (node_.type == Type::integer &&
        (key_.form != Form::bytes || key_.path.ends_with("_bytes"))) {
      if (!in_range(node_, static_cast<double>(node_.integer))) return false;
      value = static_cast<std::uint64_t>(node_.integer);
    } else if (node_.type == Type::text && key_.form == Form::bytes) {
      const auto parsed = parse_bytes(node_.text);
      if (!parsed.ok()) return fail(node_, parsed.error);
      value = parsed.value;
      if (!in_range(node_, static_cast<double>(value))) return false;
    } else {
      return wrong_type(node_);
    }
    if (value > std::numeric_limits<T>::max()) return fail(node_, "too large");
    *target = static_cast<T>(value);
    return true;
  }

  const KeySpec& key_;
  const Field& field_;
  const TomlNode& node_;
  ReadContext& context_;
};

std::string dotted(std::string_view table, std::string_view key) {
  return table.empty() ? std::string(key) : fmt::format("{}.{}", table, key);
}

// Names valid directly under `table`: keys and tables.
std::vector<std::string_view> names_under(std::string_view table) {
  std::vector<std::string_view> names;
  for (const KeySpec& key : scenario_keys()) {
    std::string_view rest = key.path;
    if (!table.empty()) {
      if (!rest.starts_with(table) || rest.size() <= table.size() || rest[table.size()] != '.') {
        continue;
      }
      rest.remove_prefix(table.size() + 1);
    }
    rest = rest.substr(0, rest.find('.'));
    if (std::find(names.begin(), names.end(), rest) == names.end()) names.push_back(rest);
  }
  if (table.empty()) names.insert(names.begin(), {"schema", "cc", "event", "fault"});
  if (table == "fabric.ecn") names.emplace_back("at_rate");
  return names;
}

struct Target {
  Scenario& out;
  GivenKeys& given;
  ReadContext& context;
};

void read_keys(const TomlNode& node, const std::string& table,
               std::span<const std::string_view> skip, Target& target) {
  const std::vector<std::string_view> names = names_under(table);
  for (const TomlMember& m : node.members) {
    if (table.empty() && std::find(skip.begin(), skip.end(), m.key) != skip.end()) continue;
    if (table.empty() && m.key == "event") {
      read_events(m.value, target.out.events, target.context);
      continue;
    }
    if (table.empty() && m.key == "fault") {
      read_faults(m.value, target.out.faults, target.context);
      continue;
    }
    const std::string path = dotted(table, m.key);
    if (path == "fabric.ecn.at_rate") {
      read_marking_rates(m.value, target.out.fabric.ecn.at_rates, target.context);
      continue;
    }
    const auto keys = scenario_keys();
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const KeySpec& k) { return k.path == path; });
    if (key != keys.end()) {
      const bool good = read_value(*key, key->field(target.out), m.value, target.context);
      target.given.add({path, m.value.where, m.value.inherited, good});
    } else if (std::find(names.begin(), names.end(), m.key) != names.end()) {
      if (m.value.is_table()) {
        read_keys(m.value, path, {}, target);
      } else {
        target.context.errors->add(m.value.where, fmt::format("{} = {}: expected a table, [{}]",
                                                              path, describe(m.value), path));
        // Its keys may be in the unread part: no rule between keys holds for their defaults.
        for (const KeySpec& lost : keys) {
          if (!lost.path.starts_with(path + ".")) continue;
          target.given.add({std::string(lost.path), m.value.where, true, false});
        }
      }
    } else {
      report_unknown_key(m, table, names, target.context);
    }
  }
}

}  // namespace

const GivenKeys::Entry* GivenKeys::find(std::string_view path) const {
  for (const Entry& e : entries_) {
    if (e.path == path) return &e;
  }
  return nullptr;
}

bool GivenKeys::usable(std::initializer_list<std::string_view> paths) const {
  return std::all_of(paths.begin(), paths.end(), [&](std::string_view path) {
    const Entry* e = find(path);
    return e == nullptr || e->usable;
  });
}

Where GivenKeys::place(std::initializer_list<std::string_view> paths,
                       const Where& otherwise) const {
  for (const std::string_view path : paths) {
    if (const Entry* e = find(path)) return e->where;
  }
  return otherwise;
}

bool read_value(const KeySpec& key, const Field& field, const TomlNode& node,
                ReadContext& context) {
  return ValueReader(key, field, node, context).read();
}

const TomlMember* read_name(const TomlNode& node, std::string_view what, std::string& out,
                            ReadContext& context) {
  const TomlMember* m = node.find("name");
  if (m == nullptr) {
    context.errors->add(node.where, fmt::format("a [[{}]] needs a name", what));
    return nullptr;
  }
  const KeySpec& key = scenario_keys().front();  // "name"
  return read_value(key, Field{&out}, m->value, context) ? m : nullptr;
}

void report_unknown_key(const TomlMember& member, std::string_view table,
                        std::span<const std::string_view> valid, ReadContext& context) {
  const std::string place = table.empty() ? "" : fmt::format(" in [{}]", table);
  std::string hint;
  if (const std::string_view near = nearest_name(member.key, valid); !near.empty()) {
    hint = fmt::format("did you mean \"{}\"?", near);
  } else {
    // Perhaps the right key in the wrong table.
    for (const KeySpec& key : scenario_keys()) {
      if (key.name() != member.key) continue;
      const std::size_t dot = key.path.rfind('.');
      hint = dot == std::string_view::npos
                 ? std::string("it stands at the top of the file, outside every table")
                 : fmt::format("did you mean \"{}\"?", key.path);
    }
  }
  if (table == "transport" && member.key == "shards") hint = "it was removed: leave it out";
  if (hint.empty()) hint = fmt::format("allowed is {}", list_names(valid));
  context.errors->add(member.where,
                      fmt::format("unknown key \"{}\"{}; {}", member.key, place, hint));
}

void read_scenario_table(const TomlNode& root, std::span<const std::string_view> handled_elsewhere,
                         Scenario& out, GivenKeys& given, ReadContext& context) {
  Target target{out, given, context};
  read_keys(root, "", handled_elsewhere, target);
}

}  // namespace paceline::config
