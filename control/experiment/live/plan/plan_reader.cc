#include "control/experiment/live/plan/plan_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/experiment/live/plan/moment.h"
#include "control/experiment/live/plan/plan_tables.h"
#include "control/experiment/live/plan/planning.h"
#include "dataplane/config/guard_bounds.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/table_rows.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::experiment::live {

namespace {

using config::KeySpec;
using config::Row;
using config::TomlMember;
using config::TomlNode;
using Type = config::TomlNode::Type;
using Names = std::vector<std::string_view>;

constexpr double kDayPs = 86'400e12;
constexpr std::uint32_t kMostPairs = 100'000;

constexpr std::array<std::string_view, 3> kDesigns{"switchback", "receiver_ports", "paired_rails"};

class PlanReader {
 public:
  PlanReader(const TomlNode& root, std::span<const cc::AlgorithmInfo> algorithms,
             const PluginFinder& plugins, Plan& out, config::Diagnostics& errors)
      : root_(root), out_(out), errors_(errors) {
    context_.algorithms = algorithms;
    if (plugins) {
      context_.load_plugin = [&plugins](const std::string& path) {
        if (path.starts_with("./")) {
          return cc::Registered{nullptr, path.substr(2) +
                                             ": a plug-in of a live experiment is "
                                             "named by its absolute path"};
        }
        return plugins(path);
      };
    }
    context_.errors = &errors;
  }

  void read() {
    read_top();
    read_places(root_, out_, context_);
    read_tables();
    const TomlMember* soft = root_.find("soft");
    if (soft != nullptr) {
      read_soft(*soft);
    } else {
      out_.soft = default_soft_limits();
    }
    if (errors_.empty()) derive();
    if (errors_.empty()) check();
  }

 private:
  void fail(const TomlNode& node, std::string_view key, std::string_view why) {
    fail_at(context_, node, key, why);
  }

  // Position of a key, else of its table, else of the file.
  config::Where place(std::string_view table, std::string_view key) const {
    const TomlNode* node = &root_;
    if (!table.empty()) {
      const TomlMember* m = root_.find(table);
      if (m == nullptr) return root_.where;
      node = &m->value;
    }
    const TomlMember* m = node->find(key);
    return m == nullptr ? node->where : m->value.where;
  }
  bool given(std::string_view table, std::string_view key) const {
    const TomlMember* m = root_.find(table);
    return m != nullptr && m->value.find(key) != nullptr;
  }

  void read_top() {
    std::string design;
    const std::vector<Row> rows{
        {{.path = "name"}, &out_.name},
        {{.path = "seed", .min = 0, .max = 9.2e18}, &out_.seed},
        {{.path = "design", .form = config::Form::choice, .choices = kDesigns}, &design},
    };
    read_rows(root_, "", rows,
              {"schema", "arm", "cluster", "nics", "timing", "blocks", "pairs", "analysis", "guard",
               "soft", "calibration"},
              context_, [](const TomlMember&) {});
    if (root_.find("design") == nullptr) {
      errors_.add(root_.where,
                  fmt::format("a plan needs a design: {}", config::list_names(kDesigns)));
    }
    if (root_.find("seed") == nullptr) {
      errors_.add(root_.where, "a plan needs a seed: it is published before the start");
    }
    if (out_.name.empty() || out_.name.size() > 64 ||
        !std::all_of(out_.name.begin(), out_.name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_';
        })) {
      errors_.add(place("", "name"), fmt::format("name = \"{}\": expected 1 to 64 letters, "
                                                 "digits, '-' and '_'",
                                                 out_.name));
    }
    for (std::size_t i = 0; i < kDesigns.size(); ++i) {
      if (design == kDesigns[i]) out_.design = static_cast<Design>(i);
    }
  }

  // Keys of [table] that are values; `other` takes the keys named there.
  template <class Other>
  void read_table(std::string_view table, const std::vector<Row>& rows, const Names& others,
                  Other other) {
    const TomlMember* m = root_.find(table);
    if (m == nullptr) return;
    if (!m->value.is_table()) {
      return errors_.add(m->where, fmt::format("expected a table, [{}]", table));
    }
    read_rows(m->value, table, rows, others, context_, other);
  }
  void read_table(std::string_view table, const std::vector<Row>& rows) {
    read_table(table, rows, {}, [](const TomlMember&) {});
  }

  std::optional<BlockMetric> metric(const TomlNode& node, std::string_view path) {
    const Names names = block_metric_names();
    if (node.type != Type::text) {
      fail(node, path, fmt::format("expected {}", config::list_names(names)));
      return std::nullopt;
    }
    const auto found = block_metric_named(node.text);
    if (!found) {
      const std::string_view near = config::nearest_name(node.text, names);
      fail(node, path,
           near.empty() ? fmt::format("expected {}", config::list_names(names))
                        : fmt::format("did you mean \"{}\"?", near));
    }
    return found;
  }

  void read_metrics(const TomlMember& m, std::string_view path, std::vector<BlockMetric>& out) {
    if (m.value.type != Type::array) return fail(m.value, path, "expected an array of metrics");
    for (const TomlNode& item : m.value.items) {
      const auto found = metric(item, path);
      if (!found) continue;
      if (std::find(out.begin(), out.end(), *found) != out.end()) {
        fail(item, path, "is given twice");
      } else {
        out.push_back(*found);
      }
    }
  }

  void read_strata(const TomlMember& m) {
    out_.load_strata.clear();
    if (m.value.type != Type::array) {
      return fail(m.value, "analysis.load_strata", "expected an array of loads, ascending");
    }
    for (const TomlNode& item : m.value.items) {
      const double edge = item.type == Type::integer ? static_cast<double>(item.integer)
                          : item.type == Type::real  ? item.real
                                                     : -1;
      const double before = out_.load_strata.empty() ? 0 : out_.load_strata.back();
      if (!(edge > before && edge < 1)) {
        fail(item, "analysis.load_strata", "expected loads between 0 and 1, ascending");
      } else {
        out_.load_strata.push_back(edge);
      }
    }
  }

  void read_begin(const TomlNode& node) {
    const std::optional<std::int64_t> at =
        node.type == Type::text ? unix_ns_of(node.text) : std::nullopt;
    if (!at) {
      return fail(node, "blocks.begin",
                  "expected a moment of UTC as a text, such as \"2026-12-01T08:00:00Z\"");
    }
    out_.begin_unix_ns = *at;
  }

  void read_tables() {
    read_table("timing",
               {{{.path = "timing.fct_p999", .min = 0, .max = kDayPs}, &out_.timing.fct_p999},
                {{.path = "timing.lease", .min = 0, .max = kDayPs}, &out_.timing.lease},
                {{.path = "timing.iteration", .min = 0, .max = kDayPs}, &out_.timing.iteration},
                {{.path = "timing.rtt", .min = 0, .max = kDayPs}, &out_.timing.rtt}});
    read_table("blocks",
               {{{.path = "blocks.length", .min = 0, .max = kDayPs, .open_min = true}, &out_.block},
                {{.path = "blocks.washout", .min = 0, .max = kDayPs}, &out_.washout},
                {{.path = "blocks.carryover", .min = 0, .max = 100}, &out_.carryover_blocks},
                {{.path = "blocks.stratum", .min = 0, .max = 30 * kDayPs}, &out_.stratum},
                {{.path = "blocks.whole_every", .min = 0, .max = 1000}, &out_.whole_every},
                {{.path = "blocks.hold", .min = 0, .max = kDayPs}, &out_.hold}},
               {"begin"}, [&](const TomlMember& m) { read_begin(m.value); });
    read_table("pairs", {{{.path = "pairs.min", .min = kLeast, .max = kMostPairs}, &out_.pairs_min},
                         {{.path = "pairs.max", .min = kLeast, .max = kMostPairs}, &out_.pairs_max},
                         {{.path = "pairs.power", .min = 0.5, .max = 0.99}, &out_.power},
                         {{.path = "pairs.minimum_effect", .min = 0, .max = 1, .open_min = true},
                          &out_.minimum_effect},
                         {{.path = "pairs.expected_sd", .min = 0, .max = 10}, &out_.expected_sd}});
    read_table("analysis",
               {{{.path = "analysis.alpha", .min = 0.0001, .max = 0.2}, &out_.alpha},
                {{.path = "analysis.soft_alpha", .min = 0.0001, .max = 0.2}, &out_.soft_alpha},
                {{.path = "analysis.closed_loop"}, &out_.closed_loop},
                {{.path = "analysis.cuped"}, &out_.cuped},
                {{.path = "analysis.telemetry_loss", .min = 0, .max = 0.5}, &out_.telemetry_loss}},
               {"primary", "metrics", "placebos", "load_strata"}, [&](const TomlMember& m) {
                 if (m.key == "primary") {
                   const auto found = metric(m.value, "analysis.primary");
                   if (found) out_.primary = *found;
                 } else if (m.key == "metrics") {
                   read_metrics(m, "analysis.metrics", out_.metrics);
                 } else if (m.key == "placebos") {
                   read_metrics(m, "analysis.placebos", out_.placebos);
                 } else {
                   read_strata(m);
                 }
               });
    HardLimits& hard = out_.hard;
    read_table(
        "guard",
        {{{.path = "guard.retransmitted_share", .min = 0, .max = config::kMostGuardShare},
          &hard.retransmitted_share},
         {{.path = "guard.retransmitted_packets", .min = 0, .max = config::kMostGuardPackets},
          &hard.retransmitted_packets},
         {{.path = "guard.pause_share", .min = 0, .max = config::kMostGuardShare},
          &hard.pause_share},
         {{.path = "guard.stall_ms", .min = 0, .max = config::kMostGuardStallMs}, &hard.stall_ms},
         {{.path = "guard.drops_packets", .min = 0, .max = config::kMostGuardPackets},
          &hard.drops_packets}});
    read_table("calibration", {{{.path = "calibration.results"}, &out_.calibration},
                               {{.path = "calibration.none_because"}, &out_.no_calibration}});
  }

  void read_soft(const TomlMember& soft) {
    each_table(soft.value, "soft", context_, [&](const TomlNode& table) {
      SoftLimit limit;
      bool named = false;
      const KeySpec worse{.path = "soft.worse_by", .min = 0, .max = 100, .open_min = true};
      const Names valid{"metric", "worse_by"};
      for (const TomlMember& m : table.members) {
        if (m.key == "metric") {
          const auto found = metric(m.value, "soft.metric");
          named = true;
          if (!found) continue;
          limit.metric = *found;
          if (info(limit.metric).better == Better::neither) {
            fail(m.value, "soft.metric", "has no bad direction, so nothing to guard");
          }
        } else if (m.key == "worse_by") {
          read_value(worse, &limit.worse_by, m.value, context_);
        } else {
          report_unknown_key(m, "soft", valid, context_);
        }
      }
      if (!named || table.find("worse_by") == nullptr) {
        errors_.add(table.where, "a [[soft]] needs metric and worse_by");
      }
      out_.soft.push_back(limit);
    });
  }

  // Derives values that were not given (docs/experiments.md, "Blocks").
  void derive() {
    if (!given("blocks", "washout")) {
      if (!given("timing", "fct_p999")) {
        errors_.add(place("blocks", "washout"),
                    "the wash-out follows from timing.fct_p999, the time within which 99.9 % of "
                    "messages complete; give that, or blocks.washout");
        return;
      }
      out_.washout = washout_for(out_.timing);
    }
    if (!given("blocks", "length")) out_.block = block_for(out_.washout, out_.timing);
    if (!given("blocks", "hold")) out_.hold = out_.block * 2;
    if (out_.begin_unix_ns != 0 && !given("pairs", "max")) out_.pairs_max = out_.pairs_min;
    if (out_.begin_unix_ns == 0 && !given("pairs", "max") && out_.expected_sd > 0) {
      const std::uint32_t needed = pairs_needed(log_effect(out_.minimum_effect), out_.expected_sd,
                                                out_.alpha, out_.power, out_.pairs_min);
      // Always-valid intervals are wider than those of a fixed size: about twice as many pairs are
      // needed.
      out_.pairs_max = std::min(kMostPairs, 2 * needed);
    }
    if (!given("pairs", "max")) out_.pairs_max = std::max(out_.pairs_max, out_.pairs_min);
    // A pair is two blocks; the design with carry-over is made of runs of m of them.
    if (out_.carryover_blocks > 1 && !given("pairs", "max")) {
      const std::uint32_t m = out_.carryover_blocks;
      out_.pairs_max = (out_.pairs_max + m - 1) / m * m;
    }
  }

  void check() {
    const Picos least = washout_for(out_.timing);
    if (out_.washout < least) {
      errors_.add(place("blocks", "washout"),
                  fmt::format("blocks.washout = {}: at least max(5 x timing.fct_p999, 3 x "
                              "timing.lease, timing.iteration, 10 x timing.rtt) = {}",
                              config::format_time(out_.washout), config::format_time(least)));
    }
    const Picos shortest = block_for(out_.washout, out_.timing);
    if (out_.block < shortest) {
      errors_.add(place("blocks", "length"),
                  fmt::format("blocks.length = {}: at least max(10 x wash-out, 30 x "
                              "timing.iteration) = {}",
                              config::format_time(out_.block), config::format_time(shortest)));
    }
    if (out_.hold < out_.block) {
      errors_.add(place("blocks", "hold"),
                  fmt::format("blocks.hold = {}: at least a block, {}; it is renewed with each",
                              config::format_time(out_.hold), config::format_time(out_.block)));
    }
    if (out_.pairs_max < out_.pairs_min) {
      errors_.add(place("pairs", "max"), fmt::format("pairs.max = {}: at least pairs.min = {}",
                                                     out_.pairs_max, out_.pairs_min));
    }
    // A host that stopped early would have the champion while the others continue.
    if (out_.begin_unix_ns != 0 && out_.pairs_max != out_.pairs_min) {
      errors_.add(
          place("blocks", "begin"),
          fmt::format("blocks.begin: hosts that switch together end together: pairs.max = {} "
                      "must be pairs.min = {}",
                      out_.pairs_max, out_.pairs_min));
    }
    if (out_.carryover_blocks > 0) {
      if (out_.design != Design::switchback) {
        errors_.add(place("blocks", "carryover"), "carry-over is modelled in a switchback only");
      }
      const std::uint32_t blocks = 2 * out_.pairs_max;
      if (blocks % out_.carryover_blocks != 0 || blocks / out_.carryover_blocks < 4) {
        errors_.add(place("pairs", "max"),
                    fmt::format("{} blocks: with blocks.carryover = {} a multiple of that, four "
                                "times as many at least",
                                blocks, out_.carryover_blocks));
      }
    }
    if (info(out_.primary).better == Better::neither) {
      errors_.add(
          place("analysis", "primary"),
          fmt::format("analysis.primary = \"{}\": has no good direction", info(out_.primary).name));
    }
    check_roles();
    if (!out_.calibration.empty() && !out_.no_calibration.empty()) {
      errors_.add(place("calibration", "none_because"),
                  "calibration.results says which A/A run there is; none_because that there is "
                  "none");
    }
  }

  // A metric has one role.
  void check_roles() {
    const auto twice = [&](BlockMetric m, const char* key) {
      errors_.add(place("analysis", key), fmt::format("\"{}\" has a role already", info(m).name));
    };
    for (const BlockMetric m : out_.metrics) {
      if (m == out_.primary || guarded(m)) twice(m, "metrics");
    }
    for (const BlockMetric m : out_.placebos) {
      const bool used =
          std::find(out_.metrics.begin(), out_.metrics.end(), m) != out_.metrics.end();
      if (m == out_.primary || guarded(m) || used) twice(m, "placebos");
    }
  }
  bool guarded(BlockMetric m) const {
    return std::any_of(out_.soft.begin(), out_.soft.end(),
                       [&](const SoftLimit& s) { return s.metric == m; });
  }

  static constexpr double kLeast = 12;  // pairs, by policy

  const TomlNode& root_;
  Plan& out_;
  config::Diagnostics& errors_;
  config::ReadContext context_;
};

}  // namespace

config::Read<Plan> read_plan_text(std::string_view text, const std::string& source,
                                  std::span<const cc::AlgorithmInfo> algorithms,
                                  const PluginFinder& plugins) {
  Plan plan;
  plan.name = config::default_name(source, "experiment");
  return config::read_document(text, source, std::move(plan),
                               [&](const TomlNode& root, Plan& value, config::Diagnostics& errors) {
                                 PlanReader(root, algorithms, plugins, value, errors).read();
                               });
}

config::Read<Plan> read_plan_file(const std::string& path,
                                  std::span<const cc::AlgorithmInfo> algorithms,
                                  const PluginFinder& plugins) {
  const config::Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  return read_plan_text(text.value, path, algorithms, plugins);
}

std::vector<std::string> plugin_paths(std::string_view text) {
  std::vector<std::string> out;
  read_plan_text(text, "plan", {}, [&](const std::string& path) {
    if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
    return cc::Registered{nullptr, path};
  });
  return out;
}

void note_plugins(Plan& plan, const config::AlgorithmCatalogue& catalogue) {
  plan.plugins.clear();
  for (const config::Arm& arm : plan.arms) {
    const config::PluginOrigin* const origin = catalogue.origin(arm.cc.algorithm);
    const bool noted =
        std::any_of(plan.plugins.begin(), plan.plugins.end(),
                    [&](const Plan::Plugin& plugin) { return plugin.name == arm.cc.algorithm; });
    if (origin != nullptr && !noted) plan.plugins.push_back({arm.cc.algorithm, origin->sha256});
  }
}

}  // namespace paceline::experiment::live
