#include "tools/workload/files/htsim_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/toml/quantity.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr std::size_t kLongestMatrix = std::size_t{1} << 30;
constexpr std::uint64_t kMostOfAKind = 1ULL << 24;
constexpr std::uint64_t kMostOfAnId = 0xFFFF'FFFF;
// Their loader reads sizes as 32 bits with a sign.
constexpr std::uint64_t kMostBytesOfAFlow = 0x7FFF'FFFF;
// If all flows start before this, the unit of the file may be microseconds instead.
constexpr Picos kUnlikelyStarts{1'000};
constexpr std::string_view kFlowKeys =
    "id, start, trigger, size, send_done_trigger, recv_done_trigger, prio or msg";

class MatrixParser {
 public:
  MatrixParser(std::string_view text, const std::string& source, std::string_view unit)
      : text_(text), source_(source), table_(text, source), unit_(unit) {}

  config::Read<HtsimMatrix> parse() {
    if (header()) {
      do {
        body();
      } while (!errors_.full() && table_.next(line_));
    }
    if (errors_.empty()) check();
    config::Read<HtsimMatrix> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(out_);
    return out;
  }

 private:
  enum Kind : std::size_t { kFlows, kTriggers, kFailures };
  static constexpr std::string_view kCountNames[] = {"Connections", "Triggers", "Failures"};

  static bool begins_body(std::string_view word) {
    return word.find("->") != std::string_view::npos || word == "trigger" || word == "failure";
  }

  // False: nothing after it can be read.
  bool header() {
    std::set<std::string_view> given;
    while (table_.next(line_)) {
      const Word& key = line_.words[0];
      if (begins_body(key.text)) break;
      const auto* const count = std::find(std::begin(kCountNames), std::end(kCountNames), key.text);
      const bool nodes = key.text == "Nodes";
      if (!nodes && count == std::end(kCountNames)) {
        unknown(key);
        return false;
      }
      if (!given.insert(key.text).second) wrong(key, fmt::format("{} is given twice", key.text));
      if (line_.words.size() != 2) {
        errors_.add(table_.behind(line_), fmt::format("{} columns: expected 2, `{} NUMBER`",
                                                      line_.words.size(), key.text));
        continue;
      }
      if (nodes) {
        out_.nodes = number(line_.words[1], "Nodes", 2, config::kMostHosts);
      } else {
        counts_[count - std::begin(kCountNames)] =
            number(line_.words[1], key.text, count == kCountNames ? 1 : 0, kMostOfAKind);
      }
    }
    for (const std::string_view key : {std::string_view("Nodes"), kCountNames[kFlows]}) {
      if (given.count(key) == 0 && errors_.empty()) {
        errors_.add(line_.words.empty() ? table_.end() : table_.where(line_.words[0]),
                    fmt::format("expected a line `{} NUMBER` before the first flow", key));
      }
    }
    if (errors_.empty() && line_.words.empty()) {
      errors_.add(table_.end(), fmt::format("Connections = {}: the file has 0", counts_[kFlows]));
    }
    return errors_.empty();
  }

  void unknown(const Word& key) {
    if (out_.nodes == 0 && counts_[kFlows] == 0 && known_format(text_) != kOwnName &&
        report_known_format(text_, table_.where(key), "a connection matrix of htsim", errors_)) {
      return;
    }
    wrong(key, fmt::format("unknown word {}: expected Nodes, Connections, Triggers, Failures, or a "
                           "flow such as 0->1",
                           key.text));
  }

  void body() {
    const Word& word = line_.words[0];
    if (word.text == "trigger") {
      if (one_more(kTriggers)) trigger();
    } else if (word.text == "failure") {
      if (one_more(kFailures)) failure();
    } else if (word.text.find("->") != std::string_view::npos) {
      if (one_more(kFlows)) flow();
    } else {
      wrong(word, fmt::format("unknown word {}: expected a flow such as 0->1, trigger or failure",
                              word.text));
    }
  }

  bool one_more(Kind kind) {
    if (found_[kind]++ < counts_[kind]) return true;
    if (found_[kind] == counts_[kind] + 1) {
      wrong(line_.words[0], fmt::format("{} = {} in the header: here is one more",
                                        kCountNames[kind], counts_[kind]));
    }
    return false;
  }

  void flow() {
    HtsimFlow f;
    const Word& pair = line_.words[0];
    f.line = pair.line;
    const std::size_t arrow = pair.text.find("->");
    const bool src = node(pair, 0, arrow, f.src);
    const bool dst = node(pair, arrow + 2, pair.text.size() - arrow - 2, f.dst);
    if (src && dst && f.src == f.dst)
      wrong(pair, fmt::format("{}: a flow from a node to itself", pair.text));
    std::set<std::string_view> given;
    for (std::size_t i = 1; i < line_.words.size();) {
      const Word& key = line_.words[i++];
      if (!given.insert(key.text).second) wrong(key, fmt::format("{} is given twice", key.text));
      if (key.text == "msg") {
        f.message = true;
        const bool numbered = i < line_.words.size() && line_.words[i].text[0] >= '0' &&
                              line_.words[i].text[0] <= '9';
        if (numbered) number(line_.words[i++], "msg", 1, kMostOfAnId);
        continue;
      }
      if (i == line_.words.size()) {
        errors_.add(table_.behind(line_), fmt::format("expected a number after {}", key.text));
        return;
      }
      if (!flow_key(key, line_.words[i++], f)) return;
    }
    if (given.count("size") == 0) wrong(pair, fmt::format("{}: expected size BYTES", pair.text));
    if (given.count("start") + given.count("trigger") != 1) {
      wrong(pair, fmt::format("{}: expected either start TIME or trigger NUMBER", pair.text));
    }
    for (const std::string_view why : {"trigger", "msg"}) {
      if (f.id != 0 || given.count(why) == 0) continue;
      wrong(pair, fmt::format("{}: a flow with {} needs an id", pair.text, why));
    }
    if (f.id != 0) check_id(pair, f);
    out_.flows.push_back(f);
  }

  bool flow_key(const Word& key, const Word& value, HtsimFlow& f) {
    if (key.text == "id") {
      f.id = number(value, "id", 1, kMostOfAnId);
    } else if (key.text == "start") {
      f.start = start(value);
    } else if (key.text == "size") {
      read_integer(table_, value, "size", 1, kMostBytesOfAFlow, f.bytes, errors_);
    } else if (key.text == "trigger") {
      f.trigger = number(value, key.text, 1, kMostOfAnId);
    } else if (key.text == "send_done_trigger") {
      f.send_done = number(value, key.text, 1, kMostOfAnId);
    } else if (key.text == "recv_done_trigger") {
      f.recv_done = number(value, key.text, 1, kMostOfAnId);
    } else if (key.text == "prio") {
      number(value, "prio", 0, kMostOfAnId);  // their transport does not use it
    } else {
      wrong(key, fmt::format("unknown word {}: expected {}", key.text, kFlowKeys));
      return false;
    }
    return true;
  }

  // Without `msg`, an id belongs to one flow.
  void check_id(const Word& pair, const HtsimFlow& f) {
    const auto [at, first] = of_id_.try_emplace(f.id, out_.flows.size());
    if (first) return;
    const HtsimFlow& other = out_.flows[at->second];
    if (!f.message || !other.message) {
      wrong(pair, fmt::format("id {} is that of line {}: expected msg in both, or another id", f.id,
                              other.line));
    } else if (f.src != other.src || f.dst != other.dst) {
      wrong(pair, fmt::format("{}: connection {} is {}->{} in line {}", pair.text, f.id, other.src,
                              other.dst, other.line));
    }
  }

  bool node(const Word& pair, std::size_t from, std::size_t length, std::uint32_t& out) {
    const Word part{pair.text.substr(from, length), pair.line,
                    pair.column + static_cast<std::uint32_t>(from)};
    std::uint64_t value = 0;
    const bool good = read_integer(table_, part, "node", 0, out_.nodes - 1, value, errors_);
    out = static_cast<std::uint32_t>(value);
    return good;
  }

  Picos start(const Word& word) {
    const auto value = config::parse_decimal(word.text, unit_ == "us" ? 6 : 0);
    if (value.ok()) return Picos{value.value};
    wrong(word, fmt::format("start = \"{}\": {}; expected {}", word.text, value.error,
                            unit_ == "us" ? "microseconds, to at most 6 decimals"
                                          : "picoseconds, an integer"));
    return Picos{0};
  }

  void trigger() {
    HtsimTrigger t;
    t.line = line_.number;
    std::set<std::string_view> given;
    std::optional<HtsimTriggerKind> kind;
    for (std::size_t i = 1; i < line_.words.size();) {
      const Word& key = line_.words[i++];
      const bool numbered = key.text == "id" || key.text == "count";
      if (!given.insert(key.text).second) wrong(key, fmt::format("{} is given twice", key.text));
      if (numbered && i == line_.words.size()) {
        errors_.add(table_.behind(line_), fmt::format("expected a number after {}", key.text));
        return;
      }
      if (numbered) {
        (key.text == "id" ? t.id : t.count) =
            number(line_.words[i++], key.text, 1, key.text == "id" ? kMostOfAnId : kMostOfAKind);
        continue;
      }
      const auto found = kKinds.find(key.text);
      if (found == kKinds.end() || kind) {
        wrong(key, fmt::format("{}: expected id, count, and one of oneshot, multishot and barrier",
                               key.text));
        return;
      }
      kind = found->second;
    }
    t.kind = kind.value_or(HtsimTriggerKind::oneshot);
    const bool barrier = kind == HtsimTriggerKind::barrier;
    if (t.id == 0 || !kind || barrier != (t.count != 0)) {
      wrong(line_.words[0],
            "expected `trigger id NUMBER` and oneshot, multishot or `barrier count NUMBER`");
    }
    out_.triggers.push_back(t);
  }

  void failure() {
    const auto& w = line_.words;
    const std::string_view type = w.size() > 2 ? w[2].text : std::string_view();
    const bool types = type == "TOR" || type == "AGG" || type == "CORE";
    if (w.size() != 7 || w[1].text != "switch_type" || w[3].text != "switch_id" ||
        w[5].text != "link_id" || !types) {
      wrong(w[0], "expected `failure switch_type TOR|AGG|CORE switch_id NUMBER link_id NUMBER`");
      return;
    }
    number(w[4], "switch_id", 0, kMostOfAnId);
    number(w[6], "link_id", 0, kMostOfAnId);
    out_.failures.push_back(w[0].line);
  }

  // Checks that need the whole file.
  void check() {
    for (const Kind kind : {kFlows, kTriggers, kFailures}) {
      if (found_[kind] == counts_[kind]) continue;
      errors_.add(table_.end(), fmt::format("{} = {} in the header: the file has {}",
                                            kCountNames[kind], counts_[kind], found_[kind]));
    }
    if (!errors_.empty()) return;
    auto& triggers = out_.triggers;
    const auto by_id = [](const HtsimTrigger& a, const HtsimTrigger& b) { return a.id < b.id; };
    std::stable_sort(triggers.begin(), triggers.end(), by_id);
    for (std::size_t i = 1; i < triggers.size(); ++i) {
      if (triggers[i].id != triggers[i - 1].id) continue;
      errors_.add({source_, triggers[i].line, 1},
                  fmt::format("trigger {} is declared in line {}, too", triggers[i].id,
                              triggers[i - 1].line));
    }
    for (const HtsimFlow& f : out_.flows) {
      for (const std::uint32_t id : {f.trigger, f.send_done, f.recv_done}) {
        if (id == 0 ||
            std::binary_search(triggers.begin(), triggers.end(), HtsimTrigger{.id = id}, by_id)) {
          continue;
        }
        errors_.add({source_, f.line, 1},
                    fmt::format("trigger {}: expected a line `trigger id {} ...`", id, id));
      }
    }
    if (unit_.empty()) check_starts();
  }

  void check_starts() {
    const HtsimFlow* last = nullptr;
    for (const HtsimFlow& f : out_.flows) {
      if (last == nullptr || f.start > last->start) last = &f;
    }
    if (last->start.count == 0 || last->start >= kUnlikelyStarts) return;
    errors_.add({source_, last->line, 1},
                fmt::format("start = {} is the latest: microseconds or picoseconds; expected the "
                            "key start_unit, \"us\" or \"ps\" (which is what htsim itself takes)",
                            last->start.count));
  }

  void wrong(const Word& word, const std::string& message) {
    errors_.add(table_.where(word), message);
  }

  std::uint32_t number(const Word& word, std::string_view what, std::uint64_t min,
                       std::uint64_t max) {
    std::uint64_t value = min;
    read_integer(table_, word, what, min, max, value, errors_);
    return static_cast<std::uint32_t>(value);
  }

  static constexpr std::string_view kOwnName = "a connection matrix of htsim (.cm)";
  const std::map<std::string_view, HtsimTriggerKind> kKinds = {
      {"oneshot", HtsimTriggerKind::oneshot},
      {"multishot", HtsimTriggerKind::multishot},
      {"barrier", HtsimTriggerKind::barrier}};

  std::string_view text_;
  std::string source_;
  TextTable table_;
  std::string_view unit_;
  TextLine line_;
  TableErrors errors_;
  HtsimMatrix out_;
  std::uint64_t counts_[3] = {};
  std::uint64_t found_[3] = {};
  std::unordered_map<std::uint32_t, std::size_t> of_id_;  // first flow with it
};

}  // namespace

config::Read<HtsimMatrix> parse_htsim_matrix(std::string_view text, const std::string& source,
                                             std::string_view unit) {
  return MatrixParser(text, source, unit).parse();
}

config::Read<HtsimMatrix> read_htsim_matrix(const std::string& path, std::string_view unit) {
  const config::Read<std::string> text = read_table_file(path, kLongestMatrix);
  if (!text.ok()) return {{}, text.errors};
  return parse_htsim_matrix(text.value, path, unit);
}

}  // namespace paceline::workload
