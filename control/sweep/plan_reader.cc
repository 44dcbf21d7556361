// Reads a sweep file: the table [sweep], and the rest, which is a scenario.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "control/league/plan/settings_text.h"
#include "control/sweep/plan.h"
#include "dataplane/base/numbers/math.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/table_rows.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::sweep {

namespace {

using config::TomlMember;
using config::TomlNode;
using Type = TomlNode::Type;

constexpr std::uint64_t kLatinStream = 0x5357'4545'50;  // of the points' positions
constexpr std::uint32_t kMostLatinPoints = 1'000'000;
constexpr int kLatinDigits = 6;  // significant, of a value between LOW and HIGH

// LOW and HIGH in the base unit of their kind, and back.
struct Range {
  enum class Kind : std::uint8_t { whole, real, time, rate, bytes };
  Kind kind = Kind::real;
  double low = 0;
  double high = 0;
  bool log = false;
};

// A number with its kind; nothing if the text is not a quantity.
std::optional<std::pair<double, Range::Kind>> quantity_of(std::string_view text) {
  const auto parsed = config::parse_override_value(text, {});
  if (parsed.type == Type::integer) {
    return std::pair{static_cast<double>(parsed.integer), Range::Kind::whole};
  }
  if (parsed.type == Type::real) return std::pair{parsed.real, Range::Kind::real};
  if (const auto time = config::parse_time(text); time.ok()) {
    return std::pair{static_cast<double>(time.value.count), Range::Kind::time};
  }
  if (const auto rate = config::parse_rate(text); rate.ok()) {
    return std::pair{static_cast<double>(rate.value.bps), Range::Kind::rate};
  }
  if (const auto bytes = config::parse_bytes(text); bytes.ok()) {
    return std::pair{static_cast<double>(bytes.value), Range::Kind::bytes};
  }
  return std::nullopt;
}

// "LOW:HIGH" or "LOW:HIGH log".
std::optional<Range> range_of(std::string_view text) {
  Range range;
  constexpr std::string_view kLog = " log";
  range.log = text.ends_with(kLog);
  if (range.log) text.remove_suffix(kLog.size());
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto low = quantity_of(text.substr(0, colon));
  const auto high = quantity_of(text.substr(colon + 1));
  if (!low || !high) return std::nullopt;
  const auto number = [](Range::Kind kind) {
    return kind == Range::Kind::whole || kind == Range::Kind::real;
  };
  if (low->second != high->second && !(number(low->second) && number(high->second))) {
    return std::nullopt;
  }
  range.kind = low->second == high->second ? low->second : Range::Kind::real;
  range.low = low->first;
  range.high = high->first;
  if (!(range.low < range.high) || (range.log && !(range.low > 0))) return std::nullopt;
  return range;
}

// As `--set` takes it.
std::string word_at(const Range& range, double share) {
  double value =
      range.log ? det_exp(det_log(range.low) + share * (det_log(range.high) - det_log(range.low)))
                : range.low + share * (range.high - range.low);
  // Few digits: a value that people can type again.
  value = std::stod(fmt::format("{:.{}g}", value, kLatinDigits));
  value = std::clamp(value, range.low, range.high);
  const auto whole = static_cast<std::int64_t>(std::llround(value));
  switch (range.kind) {
    case Range::Kind::whole:
      return fmt::format("{}", whole);
    case Range::Kind::time:
      return config::format_time(Picos{whole});
    case Range::Kind::rate:
      return config::format_rate(Rate{static_cast<std::uint64_t>(whole)});
    case Range::Kind::bytes:
      return config::format_bytes(static_cast<std::uint64_t>(whole));
    case Range::Kind::real:
      break;
  }
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class SweepReader {
 public:
  SweepReader(TomlNode& root, const std::string& folder, const config::ReaderOptions& options,
              config::Diagnostics& errors, Plan& out)
      : root_(root),
        errors_(errors),
        context_{options.algorithms, folder, &errors, options.load_plugin},
        out_(out) {}

  void read() {
    const TomlMember* const sweep = root_.find("sweep");
    if (sweep == nullptr || !sweep->value.is_table()) {
      errors_.add(sweep == nullptr ? root_.where : sweep->where,
                  "expected a table [sweep]: docs/experiments.md has its keys");
      return;
    }
    const std::vector<config::Row> rows{
        {{.path = "sweep.repetitions", .min = 1, .max = kMostRepetitions}, &out_.repetitions}};
    read_rows(sweep->value, "sweep", rows, {"grid", "latin", "list"}, context_,
              [this](const TomlMember& m) { read_part(m); });
    std::erase_if(root_.members, [](const TomlMember& m) { return m.key == "sweep"; });
    collect_keys();
    check_count();
  }

 private:
  // A table's values with their keys, in the order of the file.
  struct Leaf {
    std::string key;
    const TomlNode* node;
  };
  void leaves(const TomlNode& table, const std::string& path, std::vector<Leaf>& out) {
    for (const TomlMember& m : table.members) {
      const std::string key = path.empty() ? m.key : path + "." + m.key;
      if (m.value.is_table()) {
        leaves(m.value, key, out);
      } else {
        out.push_back({key, &m.value});
      }
    }
  }
  std::vector<Leaf> leaves_of(const TomlNode& table) {
    std::vector<Leaf> out;
    leaves(table, "", out);
    std::sort(out.begin(), out.end(), [](const Leaf& a, const Leaf& b) {
      return std::pair(a.node->where.line, a.node->where.column) <
             std::pair(b.node->where.line, b.node->where.column);
    });
    return out;
  }

  void read_part(const TomlMember& m) {
    if (m.key == "list") {
      TomlNode rows = m.value;
      config::each_table(rows, "sweep.list", context_, [this](TomlNode& row) {
        std::vector<ListValue> values;
        for (const Leaf& leaf : leaves_of(row)) {
          values.push_back({leaf.key, {league::setting_word(*leaf.node), *leaf.node}});
        }
        out_.list.push_back(std::move(values));
      });
    } else if (!m.value.is_table()) {
      errors_.add(m.where, fmt::format("sweep.{}: expected a table, [sweep.{}]", m.key, m.key));
    } else if (m.key == "grid") {
      read_grid(m.value);
    } else {
      read_latin(m.value);
    }
  }

  void read_grid(const TomlNode& table) {
    for (const Leaf& leaf : leaves_of(table)) {
      if (leaf.node->type != Type::array || leaf.node->items.empty()) {
        errors_.add(leaf.node->where,
                    fmt::format("sweep.grid.{} = {}: expected a list of values, [a, b, ...]",
                                leaf.key, describe(*leaf.node)));
        continue;
      }
      GridAxis axis{leaf.key, {}};
      for (const TomlNode& item : leaf.node->items) {
        Value value{league::setting_word(item), item};
        const bool twice =
            std::any_of(axis.values.begin(), axis.values.end(),
                        [&](const Value& other) { return other.word == value.word; });
        if (twice) {
          errors_.add(item.where, fmt::format("sweep.grid.{}: {} is given twice; once is allowed",
                                              leaf.key, value.word));
        }
        axis.values.push_back(std::move(value));
      }
      out_.grid.push_back(std::move(axis));
    }
  }

  void read_latin(const TomlNode& table) {
    std::uint32_t points = 0;
    TomlNode ranges = table;
    if (const TomlMember* const m = table.find("points")) {
      const config::KeySpec key{.path = "sweep.latin.points", .min = 2, .max = kMostLatinPoints};
      config::read_value(key, &points, m->value, context_);
      std::erase_if(ranges.members, [](const TomlMember& other) { return other.key == "points"; });
    } else {
      errors_.add(table.where, "sweep.latin: expected points = N, how many there are");
    }
    for (const Leaf& leaf : leaves_of(ranges)) {
      const auto range =
          leaf.node->type == Type::text ? range_of(leaf.node->text) : std::optional<Range>();
      if (!range) {
        errors_.add(leaf.node->where,
                    fmt::format("sweep.latin.{} = {}: expected \"LOW:HIGH\" or \"LOW:HIGH log\" "
                                "with LOW < HIGH of one unit, above 0 for log, such as "
                                "\"100kB:2MB log\"",
                                leaf.key, describe(*leaf.node)));
        continue;
      }
      spread(leaf, *range, points);
    }
    if (points != 0 && !out_.latin.empty()) out_.latin_points = points;
  }

  // A value in each of `points` equal parts of the range, in an order of its own.
  void spread(const Leaf& leaf, const Range& range, std::uint32_t points) {
    Random random(out_.seed, kLatinStream + out_.latin.size());
    std::vector<std::uint32_t> parts(points);
    std::iota(parts.begin(), parts.end(), 0U);
    for (std::size_t i = parts.size(); i > 1; --i) std::swap(parts[i - 1], parts[random.below(i)]);
    LatinAxis axis{leaf.key, leaf.node->where, {}};
    for (const std::uint32_t part : parts) {
      const double share = (part + random.uniform()) / points;
      axis.words.push_back(word_at(range, share));
    }
    out_.latin.push_back(std::move(axis));
  }

  // Keys that results could not tell apart, or that are not a point's.
  void collect_keys() {
    std::set<std::string> list_keys;
    const auto add = [this](const std::string& key, const config::Where& where) {
      constexpr std::array<std::string_view, 3> kNot{"seed", "schema", "name"};
      if (std::find(kNot.begin(), kNot.end(), key) != kNot.end()) {
        errors_.add(where, fmt::format("{}: cannot be swept; it is set once for all points", key));
      }
      if (std::find(out_.keys.begin(), out_.keys.end(), key) != out_.keys.end()) {
        errors_.add(where, fmt::format("{}: is swept twice; once is allowed", key));
      }
      out_.keys.push_back(key);
    };
    for (const auto& row : out_.list) {
      for (const ListValue& given : row) {
        if (list_keys.insert(given.key).second) add(given.key, given.value.node.where);
      }
    }
    for (const GridAxis& axis : out_.grid) add(axis.key, axis.values.front().node.where);
    for (const LatinAxis& axis : out_.latin) add(axis.key, axis.where);
    for (const std::string& text : out_.overrides) {
      const std::string key = text.substr(0, text.find('='));
      if (std::find(out_.keys.begin(), out_.keys.end(), key) == out_.keys.end()) continue;
      errors_.add({"--set " + text, 0, 0}, "the file sweeps this key; remove it from [sweep]");
    }
  }

  void check_count() {
    if (out_.keys.empty() && errors_.empty()) {
      errors_.add(root_.where, "[sweep] names no values: expected grid, latin or list");
    }
    double points = static_cast<double>(std::max<std::size_t>(out_.list.size(), 1)) *
                    static_cast<double>(out_.latin_points);
    for (const GridAxis& axis : out_.grid) points *= static_cast<double>(axis.values.size());
    if (points * out_.repetitions > static_cast<double>(kMostPoints)) {
      errors_.add(root_.where, fmt::format("[sweep] has {:.0f} points of {} repetitions; allowed "
                                           "are {} runs at most",
                                           points, out_.repetitions, kMostPoints));
    }
  }

  TomlNode& root_;
  config::Diagnostics& errors_;
  config::ReadContext context_;
  Plan& out_;
};

}  // namespace

config::Read<Plan> read_plan_file(const std::string& path, const config::ReaderOptions& options) {
  const config::Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  Plan start;
  start.name = config::default_name(path, start.name);
  start.file = path;
  start.text = text.value;
  start.overrides = options.overrides;
  const std::string folder = config::folder_of(path);
  auto read = config::read_document(
      text.value, path, std::move(start),
      [&](TomlNode& root, Plan& out, config::Diagnostics& errors) {
        // The seed decides where the points of a hypercube are.
        TomlNode scenario = root;
        std::erase_if(scenario.members, [](const TomlMember& m) { return m.key == "sweep"; });
        config::Scenario base;
        config::Diagnostics of_base;
        read_scenario_root(scenario, base, folder, options, of_base);
        out.seed = base.seed;
        if (const TomlMember* const name = root.find("name");
            name != nullptr && name->value.type == Type::text) {
          out.name = base.name;
        }
        SweepReader(root, folder, options, errors, out).read();
        out.scenario = root;
      });
  return read;
}

}  // namespace paceline::sweep
