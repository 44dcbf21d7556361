// Reads a league file: entries, scenarios, sizes; then every cell as the scenario that will run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "control/league/plan/plan_parts.h"
#include "control/league/plan/settings_text.h"
#include "dataplane/config/scenario/table_rows.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::league {

namespace {

using config::Diagnostics;
using config::TomlMember;
using config::TomlNode;
using config::Where;
using Names = std::vector<std::string_view>;
using Type = TomlNode::Type;

constexpr std::uint32_t kMostRepetitions = 10'000;
// Keys of a scenario that a size may override: never the seed or the algorithm.
constexpr std::array<std::string_view, 4> kLaidBySize{"fabric", "transport", "workload",
                                                      "max_hops"};

constexpr std::array<std::string_view, 4> kScenarioKeys{"name", "file", "quick", "full"};

class PlanReader {
 public:
  PlanReader(TomlNode& root, const PlanOptions& options, std::string folder, Diagnostics& errors,
             Plan& out)
      : root_(root),
        options_(options),
        folder_(std::move(folder)),
        errors_(errors),
        context_{options.reader.algorithms, folder_, &errors, options.reader.load_plugin},
        out_(out) {}

  void read() {
    out_.size = options_.size;
    read_top();
    read_omit();
    read_list("entry", [this](TomlNode& node) { read_entry_node(node); });
    read_list("scenario", [this](TomlNode& node) { read_scenario(node); });
    if (!errors_.empty()) return;  // an entry that could not be read is not forgotten
    check_shelf();
    if (!errors_.empty()) return;
    choose(options_.only, "--only", "scenario", out_.scenarios);
    choose(options_.entries, "--entries", "entry", out_.entries);
    if (errors_.empty()) {
      make_cells(out_, options_.reader, errors_);
    }
  }

 private:
  void fail(const TomlNode& node, std::string_view key, std::string_view allowed) {
    errors_.add(node.where, fmt::format("{} = {}: expected {}", key, describe(node), allowed));
  }

  void read_top() {
    const std::vector<config::Row> rows{
        {config::scenario_keys().front(), &out_.name},  // "name"
        {{.path = "seed", .min = 0, .max = 9.2e18}, &out_.seed},
        {{.path = "confidence", .min = 0.5, .max = 0.9999}, &out_.confidence},
        {{.path = "margin", .min = 0, .max = 0.5}, &out_.margin},
        {{.path = "queue_floor", .form = config::Form::bytes, .min = 0, .max = 1e15},
         &out_.queue_floor_bytes}};
    read_rows(root_, "", rows, {"schema", "quick", "full", "omit", "entry", "scenario", "common"},
              context_, [](const TomlMember&) {});
    for (const Size size : {Size::quick, Size::full}) read_size(size);
    if (options_.repetitions != 0) out_.repetitions = options_.repetitions;
    if (const TomlMember* m = root_.find("common")) {
      if (!m->value.is_table()) {
        fail(m->value, "common", "a table, [common]");
      } else {
        common_ = m->value;
        check_keys(common_, "common", kLaidBySize, context_);
      }
    }
  }

  void read_size(Size size) {
    const TomlMember* m = root_.find(to_text(size));
    if (m == nullptr) {
      errors_.add(root_.where,
                  fmt::format("a league needs a table {} = {{ repetitions = N }}", to_text(size)));
      return;
    }
    if (!m->value.is_table()) return fail(m->value, to_text(size), "{ repetitions = N }");
    std::uint32_t repetitions = 0;
    const std::vector<config::Row> rows{
        {{.path = path_of(size), .min = 1, .max = kMostRepetitions}, &repetitions}};
    read_rows(m->value, to_text(size), rows, {}, context_, [](const TomlMember&) {});
    if (m->value.find("repetitions") == nullptr)
      fail(m->value, to_text(size), "{ repetitions = N }");
    if (size == options_.size) out_.repetitions = repetitions;
  }
  static std::string_view path_of(Size size) {
    return size == Size::quick ? "quick.repetitions" : "full.repetitions";
  }

  void read_omit() {
    const TomlMember* m = root_.find("omit");
    if (m == nullptr) return;
    if (!m->value.is_table()) return fail(m->value, "omit", "a table of NAME = \"why\"");
    Names names;
    for (const cc::AlgorithmInfo& a : context_.algorithms) names.push_back(a.name);
    check_keys(m->value, "omit", names, context_);
    for (const TomlMember& o : m->value.members) {
      if (o.value.type != Type::text || o.value.text.empty()) {
        fail(o.value, "omit." + o.key, "the reason, in quotes");
      } else {
        out_.omitted.push_back({o.key, o.value.text});
      }
    }
  }

  template <class Read>
  void read_list(std::string_view key, Read read) {
    TomlMember* m = root_.find(key);
    if (m == nullptr || m->value.items.empty()) {
      errors_.add(m == nullptr ? root_.where : m->where,
                  fmt::format("a league needs tables [[{}]]", key));
    } else {
      config::each_table(m->value, key, context_, read);
    }
  }

  void read_entry_node(TomlNode& node) {
    Entry entry;
    if (!read_new_name(node, "entry", out_.entries, entry.name, context_)) return;
    if (!read_entry(node, entry, context_)) return;
    out_.entries.push_back(std::move(entry));
  }

  void read_scenario(TomlNode& node) {
    PlanScenario scenario;
    if (!read_new_name(node, "scenario", out_.scenarios, scenario.name, context_)) return;
    check_keys(node, "scenario", kScenarioKeys, context_);
    scenario.laid = common_;
    for (const Size size : {Size::quick, Size::full}) {
      const TomlMember* m = node.find(to_text(size));
      if (m == nullptr) continue;
      if (!m->value.is_table()) {
        fail(m->value, to_text(size), "a table laid over the scenario");
        continue;
      }
      check_keys(m->value, to_text(size), kLaidBySize, context_);
      if (size == options_.size) merge_into(scenario.laid, m->value);
    }
    const TomlMember* file = node.find("file");
    if (file == nullptr || file->value.type != Type::text || file->value.text.empty()) {
      errors_.add(file == nullptr ? node.where : file->value.where,
                  fmt::format("scenario \"{}\": file: expected a scenario file in quotes, such as "
                              "\"scenarios/ring.toml\"",
                              scenario.name));
      return;
    }
    scenario.file = (std::filesystem::path(folder_) / file->value.text).lexically_normal().string();
    const auto text = config::read_text_file(scenario.file, config::kLongestDocument);
    if (!text.ok()) {
      for (const std::string& error : text.errors) errors_.add(file->value.where, error);
      return;
    }
    scenario.text = text.value;
    scenario.about = first_comment(scenario.text);
    scenario.settings = settings_of(scenario.laid);
    out_.scenarios.push_back(std::move(scenario));
  }

  static std::string first_comment(std::string_view text) {
    std::string out;
    while (text.starts_with("#")) {
      const std::string_view line = text.substr(0, text.find('\n'));
      std::string_view words = line.substr(1);
      if (words.find_first_not_of(" \t\r") == words.npos) break;  // the first paragraph
      words.remove_prefix(words.find_first_not_of(" \t"));
      out += (out.empty() ? "" : " ") + std::string(words);
      text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return out;
  }

  // Every algorithm of this build is entered, or left out with a reason.
  void check_shelf() {
    for (const cc::AlgorithmInfo& a : context_.algorithms) {
      const bool entered = std::any_of(out_.entries.begin(), out_.entries.end(),
                                       [&](const Entry& e) { return e.cc.algorithm == a.name; });
      const bool omitted = std::any_of(out_.omitted.begin(), out_.omitted.end(),
                                       [&](const Omitted& o) { return o.algorithm == a.name; });
      if (entered != omitted) continue;
      errors_.add(root_.where,
                  entered ? fmt::format("algorithm \"{}\" is omitted and has an [[entry]]", a.name)
                          : fmt::format("algorithm \"{}\" has no [[entry]]; enter it, or say why "
                                        "not: omit = {{ {} = \"why\" }}",
                                        a.name, a.name));
    }
  }

  // Keeps what was asked for, in the order of the file.
  template <class Item>
  void choose(const std::vector<std::string>& wanted, std::string_view option,
              std::string_view what, std::vector<Item>& items) {
    if (wanted.empty()) return;
    Names names;
    for (const Item& item : items) names.push_back(item.name);
    for (const std::string& name : wanted) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      errors_.add({std::string(option), 0, 0}, fmt::format("no {} is named \"{}\"; allowed is {}",
                                                           what, name, config::list_names(names)));
    }
    if (!errors_.empty()) return;
    std::erase_if(items, [&](const Item& item) {
      return std::find(wanted.begin(), wanted.end(), item.name) == wanted.end();
    });
  }

  TomlNode& root_;
  const PlanOptions& options_;
  std::string folder_;
  Diagnostics& errors_;
  config::ReadContext context_;
  Plan& out_;
  TomlNode common_;
};

}  // namespace

config::Read<Plan> read_plan_file(const std::string& path, const PlanOptions& options) {
  const config::Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  Plan start;
  start.name = config::default_name(path, start.name);
  return config::read_document(
      text.value, path, std::move(start), [&](TomlNode& root, Plan& out, Diagnostics& errors) {
        PlanReader(root, options, config::folder_of(path), errors, out).read();
      });
}

}  // namespace paceline::league
