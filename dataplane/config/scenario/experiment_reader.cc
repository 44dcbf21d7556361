// Experiment files: shared tables under every scenario, arms, overrides by name.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::config {

namespace {

using Names = std::vector<std::string_view>;

class ExperimentReader {
 public:
  ExperimentReader(TomlNode root, std::vector<Override> overrides, ReadContext context,
                   Experiment& out)
      : root_(std::move(root)),
        overrides_(std::move(overrides)),
        context_(std::move(context)),
        errors_(*context_.errors),
        out_(out) {}

  void read() {
    start_ = root_.where;
    find_tables();
    apply_overrides();
    read_top();
    read_arms();
    read_scenarios();
  }

 private:
  // The elements of an array of tables, each with its name ("" when it has none yet).
  struct Named {
    std::string name;
    TomlNode node;
  };

  void take_list(std::string_view key, std::vector<Named>& out) {
    TomlMember* m = root_.find(key);
    if (m == nullptr) return;
    each_table(m->value, key, context_, [&out](TomlNode& item) {
      const TomlMember* name = item.find("name");
      const bool named = name != nullptr && name->value.type == TomlNode::Type::text;
      out.push_back({named ? name->value.text : "", std::move(item)});
    });
  }

  void find_tables() {
    take_list("scenario", scenarios_);
    take_list("arm", arms_);
    if (TomlMember* m = root_.find("common")) {
      if (m->value.is_table()) {
        common_ = std::move(m->value);
        mark_inherited(common_);
      } else {
        errors_.add(m->where, "expected a table, [common]");
      }
    }
    for (Named& s : scenarios_) {
      TomlNode merged = common_;
      merge_into(merged, s.node);
      s.node = std::move(merged);
    }
  }

  TomlNode* find_named(std::vector<Named>& list, std::string_view kind, std::string_view name,
                       const Where& where) {
    Names names;
    for (Named& n : list) {
      if (n.name == name) return &n.node;
      names.push_back(n.name);
    }
    const std::string_view near = nearest_name(name, names);
    errors_.add(where, fmt::format("no {} is named \"{}\"; {}", kind, name,
                                   near.empty() ? fmt::format("there is {}", list_names(names))
                                                : fmt::format("did you mean \"{}\"?", near)));
    return nullptr;
  }

  void apply_overrides() {
    for (const Override& o : overrides_) {
      const std::string_view path = o.path;
      const std::size_t dot = path.find('.');
      const std::string_view first = path.substr(0, dot);
      if (first == "scenario" || first == "arm") {
        apply_named(o, first, dot == std::string_view::npos ? "" : path.substr(dot + 1));
      } else if (first == "common") {
        apply_to_all(o, dot == std::string_view::npos ? "" : path.substr(dot + 1));
      } else if (is_top_key(path)) {
        apply_override(root_, path, o.value, errors_);
      } else if (first == "cc") {
        errors_.add(o.value.where,
                    "in an experiment every arm has its own; use arm.NAME." + o.path);
      } else {
        apply_to_all(o, path);
      }
    }
    for (Named& s : scenarios_) forgive_replaced_choices(s.node);
  }

  static bool is_top_key(std::string_view path) {
    if (path == "schema") return true;
    return std::any_of(experiment_keys().begin(), experiment_keys().end(),
                       [&](const KeySpec& k) { return k.path == path; });
  }

  void apply_named(const Override& o, std::string_view kind, std::string_view rest) {
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) {
      errors_.add(o.value.where, fmt::format("expected {}.NAME.key=value", kind));
      return;
    }
    auto& list = kind == "arm" ? arms_ : scenarios_;
    TomlNode* node = find_named(list, kind, rest.substr(0, dot), o.value.where);
    if (node == nullptr) return;
    std::string_view path = rest.substr(dot + 1);
    if (kind == "arm" && path.starts_with("cc.")) path.remove_prefix(3);
    apply_override(*node, path, o.value, errors_);
  }

  void apply_to_all(const Override& o, std::string_view path) {
    TomlNode value = o.value;
    mark_inherited(value);
    for (Named& s : scenarios_) apply_override(s.node, path, value, errors_);
    if (scenarios_.empty()) apply_override(common_, path, value, errors_);
  }

  void read_top() {
    Names valid{"schema", "common", "scenario", "arm"};
    for (const KeySpec& k : experiment_keys()) valid.push_back(k.path);
    for (const TomlMember& m : root_.members) {
      const auto keys = experiment_keys();
      const auto key =
          std::find_if(keys.begin(), keys.end(), [&](const KeySpec& k) { return k.path == m.key; });
      if (key != keys.end()) {
        read_value(*key, experiment_field(out_, key->path), m.value, context_);
      } else if (m.key == "fabric" || m.key == "transport" || m.key == "workload") {
        errors_.add(m.where, fmt::format("in an experiment it belongs to [common.{0}] or "
                                         "[scenario.{0}]; this may be a scenario file, for "
                                         "`paceline emulate`",
                                         m.key));
      } else if (m.key == "cc") {
        errors_.add(m.where, "in an experiment congestion control is set per [[arm]]");
      } else if (std::find(valid.begin(), valid.end(), m.key) == valid.end()) {
        report_unknown_key(m, "", valid, context_);
      }
    }
  }

  void read_arms() {
    for (const Named& named : arms_) {
      Arm arm;
      read_new_name(named.node, "arm", out_.arms, arm.name, context_);
      if (named.node.find("algorithm") == nullptr) {
        errors_.add(named.node.where, "an [[arm]] needs an algorithm");
      }
      constexpr std::array<std::string_view, 1> kName{"name"};
      read_cc_table(named.node, "arm", kName, arm.cc, context_);
      out_.arms.push_back(std::move(arm));
    }
    if (out_.arms.size() < 2) {
      errors_.add(start_, fmt::format("an experiment compares at least 2 arms; {} [[arm]] given",
                                      out_.arms.size()));
    }
  }

  void read_scenarios() {
    for (Named& named : scenarios_) {
      Scenario scenario;
      read_new_name(named.node, "scenario", out_.scenarios, scenario.name, context_);
      read_scenario_node(named.node, scenario);
      scenario.seed = out_.seed;
      out_.scenarios.push_back(std::move(scenario));
    }
    if (scenarios_.empty()) {
      errors_.add(start_, "an experiment needs at least one [[scenario]]");
      common_.where = start_;
      Scenario unused;
      read_scenario_node(common_, unused);  // its errors are reported, too
    }
  }

  void read_scenario_node(const TomlNode& node, Scenario& scenario) {
    for (const std::string_view key : {"seed", "schema", "cc"}) {
      if (const TomlMember* m = node.find(key)) {
        errors_.add(m->where,
                    fmt::format("{} does not belong to a scenario of an experiment: {}", key,
                                key == "cc" ? "congestion control is set per [[arm]]"
                                            : "it is set once, at the top of the file"));
      }
    }
    constexpr std::array<std::string_view, 4> kElsewhere{"seed", "schema", "cc", "name"};
    GivenKeys given;
    read_scenario_table(node, kElsewhere, scenario, given, context_);
    imply(scenario, given);
    check_scenario(scenario, given, node.where, context_);
    for (std::size_t i = 0; i < out_.arms.size(); ++i) {
      check_cc_needs(scenario, out_.arms[i].cc, arms_[i].node, "arm", context_);
    }
  }

  TomlNode root_;
  std::vector<Override> overrides_;
  ReadContext context_;
  Diagnostics& errors_;
  Experiment& out_;
  Where start_;
  TomlNode common_;
  std::vector<Named> scenarios_;
  std::vector<Named> arms_;
};

}  // namespace

Read<Experiment> read_experiment_text(std::string_view text, const std::string& source,
                                      const std::string& folder, const ReaderOptions& options) {
  Experiment start;
  start.name = default_name(source, start.name);
  return read_document(
      text, source, std::move(start), [&](TomlNode& root, Experiment& out, Diagnostics& errors) {
        std::vector<Override> overrides = split_overrides(options.overrides, errors);
        ExperimentReader(std::move(root), std::move(overrides),
                         ReadContext{options.algorithms, folder, &errors, options.load_plugin}, out)
            .read();
      });
}

Read<Experiment> read_experiment_file(const std::string& path, const ReaderOptions& options) {
  const Read<std::string> text = read_text_file(path, kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  return read_experiment_text(text.value, path, folder_of(path), options);
}

}  // namespace paceline::config
