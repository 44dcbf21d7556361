#include "tools/workload/jobs/goal_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/workload/files/foreign_format.h"
#include "tools/workload/jobs/goal_lines.h"
#include "tools/workload/jobs/import_limits.h"
#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostCpus = 65'536;
constexpr std::string_view kGoalFile = "a GOAL schedule (num_ranks N)";

class GoalParser {
 public:
  GoalParser(std::string_view text, const std::string& source)
      : text_(text), source_(source), table_(text, source), lines_(text, source) {}

  Imported<Job> parse() {
    if (header()) {
      while (!errors_.full() && lines_.next(line_, errors_)) statement();
      if (errors_.empty()) end();
    }
    Imported<Job> out;
    out.errors = errors_.list();
    if (!out.ok()) return out;
    sort_once(job_.waits);
    out.value = std::move(job_);
    if (other_nics_ != 0) {
      out.warnings.push_back(fmt::format(
          "{}: {} operations name a nic other than 0: a rank has one here", source_, other_nics_));
    }
    return out;
  }

 private:
  bool header() {
    if (!lines_.next(line_, errors_)) {
      if (!errors_.empty() &&
          !known_format(text_).empty()) {  // a character that is in no GOAL file
        errors_ = {};
        report_known_format(text_, {source_, 1, 1}, kGoalFile, errors_);
      } else if (errors_.empty()) {
        errors_.add(lines_.end(), "the file is empty: expected num_ranks N");
      }
      return false;
    }
    const Word& key = line_.words[0];
    if (key.text != "num_ranks") {
      if (!report_known_format(text_, table_.where(key), kGoalFile, errors_)) {
        wrong(key, fmt::format("{}: expected num_ranks N", key.text));
      }
      return false;
    }
    if (!columns(2, "num_ranks N")) return false;
    std::uint64_t ranks = 0;
    if (!number(line_.words[1], "num_ranks", 1, kMostJobRanks, ranks)) return false;
    job_.ranks = static_cast<std::uint32_t>(ranks);
    begun_.resize(job_.ranks);
    return true;
  }

  void statement() {
    if (!in_rank_) {
      begin_rank();
    } else if (line_.words[0].text == "}") {
      if (columns(1, "}")) end_rank();
    } else if (word(1) == "requires" || word(1) == "irequires") {
      dependency();
    } else {
      operation();
    }
  }

  void begin_rank() {
    if (line_.words[0].text != "rank" || !columns(3, "rank R {") || word(2) != "{") {
      wrong(line_.words[0], fmt::format("{}: expected `rank R {{`", line_.words[0].text));
      return;
    }
    std::uint64_t rank = 0;
    in_rank_ = true;
    if (!number(line_.words[1], "rank", 0, job_.ranks - 1, rank)) return;
    if (begun_[rank]) wrong(line_.words[1], fmt::format("rank {} is given twice", rank));
    begun_[rank] = true;
    rank_ = static_cast<std::uint32_t>(rank);
  }

  void operation() {
    std::size_t at = 0;
    const bool labelled = word(1) == ":";
    if (labelled) at = 2;
    JobOp op;
    op.rank = rank_;
    op.line = line_.number;
    std::uint64_t cpu = 0;
    const bool read = word(at) == "calc" ? calc(at, op, cpu) : message(at, op, cpu);
    if (!read) return;
    if (ops_.size() + job_.ops.size() == kMostJobOps) {
      wrong(line_.words[0], fmt::format("more than {} operations", kMostJobOps));
    } else if (!labelled || label(line_.words[0], op)) {
      ops_.push_back(op);
      cpu_.push_back(op.kind == JobOpKind::compute ? static_cast<std::uint32_t>(cpu) : kNoCpu);
    }
  }

  bool label(const Word& name, JobOp& op) {
    const auto index = static_cast<std::uint32_t>(ops_.size());
    const auto [at, first] = labels_.try_emplace(name.text, index);
    if (!first) {
      wrong(name, fmt::format("label {} is that of line {}: expected another", name.text,
                              ops_[at->second].line));
      return false;
    }
    const auto [known, added] =
        names_.try_emplace(name.text, static_cast<std::uint32_t>(job_.names.size()));
    if (added) job_.names.emplace_back(name.text);
    op.name = known->second;
    return true;
  }

  bool calc(std::size_t at, JobOp& op, std::uint64_t& cpu) {
    std::uint64_t nanos = 0;
    if (!has(at + 1, "nanoseconds") ||
        !number(line_.words[at + 1], "calc", 0, kMostJobNanos, nanos)) {
      return false;
    }
    op.duration = picos_from_nanos(static_cast<std::int64_t>(nanos));
    return options(at + 2, op, cpu);
  }

  bool message(std::size_t at, JobOp& op, std::uint64_t& cpu) {
    const bool send = word(at) == "send";
    if (!send && word(at) != "recv") {
      if (at < line_.words.size()) {
        wrong(line_.words[at],
              fmt::format("{}: expected send, recv, calc, `LABEL requires LABEL`, `LABEL irequires "
                          "LABEL` or }}",
                          line_.words[at].text));
      } else {
        errors_.add(table_.behind(line_), "expected send, recv or calc behind the label");
      }
      return false;
    }
    op.kind = send ? JobOpKind::send : JobOpKind::receive;
    const std::string_view way = send ? "to" : "from";
    if (!has(at + 1, "a size such as 8b")) return false;
    Word size = line_.words[at + 1];
    if (size.text.back() != 'b') {
      wrong(size, fmt::format("size = {}: expected bytes such as 8b", size.text));
      return false;
    }
    size.text.remove_suffix(1);
    if (!number(size, "size", 0, kMostJobBytes, op.bytes)) return false;
    if (!has(at + 2, way)) return false;
    if (word(at + 2) != way) {
      wrong(line_.words[at + 2], fmt::format("{}: expected {}", word(at + 2), way));
      return false;
    }
    return has(at + 3, "a rank") &&
           number_or_any(line_.words[at + 3], "rank", job_.ranks - 1, !send, op.peer) &&
           options(at + 4, op, cpu);
  }

  // [tag T] [cpu C] [nic K]
  bool options(std::size_t at, JobOp& op, std::uint64_t& cpu) {
    const bool message = op.kind != JobOpKind::compute;
    std::set<std::string_view> given;
    for (; at < line_.words.size(); at += 2) {
      const Word& key = line_.words[at];
      const bool of_message = key.text == "tag" || key.text == "nic";
      if (key.text != "cpu" && !(of_message && message)) {
        wrong(key, fmt::format("{}: expected {}", key.text, message ? "tag, cpu or nic" : "cpu"));
        return false;
      }
      if (!given.insert(key.text).second) {
        wrong(key, fmt::format("{} is given twice", key.text));
        return false;
      }
      if (!has(at + 1, fmt::format("a number behind {}", key.text))) return false;
      const Word& value = line_.words[at + 1];
      std::uint64_t nic = 0;
      if (key.text == "tag") {
        const bool any = op.kind == JobOpKind::receive;
        if (!number_or_any(value, "tag", kAnyTag - 1, any, op.tag)) return false;
      } else if (!number(value, key.text, 0, kMostCpus - 1, key.text == "cpu" ? cpu : nic)) {
        return false;
      }
      if (nic != 0) ++other_nics_;
    }
    return true;
  }

  void dependency() {
    if (!columns(3, "LABEL requires LABEL")) return;
    std::uint32_t op[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const Word& name = line_.words[2 * i];
      const auto at = labels_.find(name.text);
      if (at == labels_.end()) {
        wrong(name,
              fmt::format("label {}: expected one of an operation above, of this rank", name.text));
        return;
      }
      op[i] = at->second;
    }
    (word(1) == "requires" ? requires_ : begun_by_).emplace_back(op[0], op[1]);
  }

  void end_rank() {
    in_rank_ = false;
    sort_once(requires_);
    sort_once(begun_by_);
    std::vector<OpPair> both = requires_;
    both.insert(both.end(), begun_by_.begin(), begun_by_.end());
    sort_once(both);
    const auto count = static_cast<std::uint32_t>(ops_.size());
    const std::vector<std::uint32_t> order = issue_order(count, both);
    if (order.size() != count) {
      report_circle(find_circle(count, both, order));
    } else if (errors_.empty()) {
      append(order);
    }
    ops_.clear();
    cpu_.clear();
    labels_.clear();
    requires_.clear();
    begun_by_.clear();
  }

  void report_circle(const std::vector<std::uint32_t>& circle) {
    const std::uint32_t other = ops_[circle[1 % circle.size()]].line;
    errors_.add({source_, ops_[circle[0]].line, 1},
                fmt::format("this operation waits for itself, by way of that of line {}", other));
  }

  // The ops of the rank in their order, and what each waits for.
  void append(const std::vector<std::uint32_t>& order) {
    const auto base = static_cast<std::uint32_t>(job_.ops.size());
    std::vector<std::uint32_t> place(order.size());
    std::map<std::uint32_t, std::uint32_t> last_of_cpu;
    std::vector<std::size_t> first_wait;  // of the ops so far, in job_.waits
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      const std::uint32_t op = order[i];
      place[op] = i;
      std::vector<std::uint32_t> before;
      for_each(requires_, op, [&](std::uint32_t other) { before.push_back(base + place[other]); });
      if (cpu_[op] != kNoCpu) {
        const auto [last, alone] = last_of_cpu.try_emplace(cpu_[op], base + i);
        if (!alone) before.push_back(std::exchange(last->second, base + i));
      }
      first_wait.push_back(job_.waits.size());
      for_each(begun_by_, op, [&](std::uint32_t other) {
        for (std::size_t w = first_wait[place[other]]; w < first_wait[place[other] + 1]; ++w) {
          before.push_back(job_.waits[w].second);
        }
      });
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      if (job_.waits.size() + before.size() > kMostJobWaits) {
        errors_.add({source_, ops_[op].line, 1},
                    fmt::format("more than {} dependencies", kMostJobWaits));
        return;
      }
      for (const std::uint32_t other : before) job_.waits.emplace_back(base + i, other);
      job_.ops.push_back(ops_[op]);
    }
  }

  template <class Do>
  static void for_each(const std::vector<OpPair>& pairs, std::uint32_t op, Do what) {
    auto at = std::lower_bound(pairs.begin(), pairs.end(), OpPair{op, 0});
    for (; at != pairs.end() && at->first == op; ++at) what(at->second);
  }

  void end() {
    if (in_rank_) errors_.add(lines_.end(), fmt::format("rank {} has no end: expected }}", rank_));
    for (std::uint32_t rank = 0; rank < job_.ranks && !errors_.full(); ++rank) {
      if (begun_[rank]) continue;
      errors_.add(lines_.end(),
                  fmt::format("num_ranks = {}: expected `rank {} {{`, too", job_.ranks, rank));
    }
  }

  std::string_view word(std::size_t place) const {
    return place < line_.words.size() ? line_.words[place].text : std::string_view{};
  }

  bool has(std::size_t place, std::string_view what) {
    if (place < line_.words.size()) return true;
    errors_.add(table_.behind(line_), fmt::format("expected {}", what));
    return false;
  }

  bool columns(std::size_t count, std::string_view form) {
    if (line_.words.size() == count) return true;
    const config::Where at =
        line_.words.size() > count ? table_.where(line_.words[count]) : table_.behind(line_);
    errors_.add(at, fmt::format("expected `{}`", form));
    return false;
  }

  bool number(const Word& text, std::string_view what, std::uint64_t min, std::uint64_t max,
              std::uint64_t& out) {
    return read_integer(table_, text, what, min, max, out, errors_);
  }

  // -1 stands for any, which is 32 ones.
  bool number_or_any(const Word& text, std::string_view what, std::uint64_t max, bool any,
                     std::uint32_t& out) {
    if (any && text.text == "-1") {
      out = 0xFFFF'FFFF;
      return true;
    }
    std::uint64_t value = 0;
    if (!number(text, what, 0, max, value)) return false;
    out = static_cast<std::uint32_t>(value);
    return true;
  }

  void wrong(const Word& at, const std::string& message) { errors_.add(table_.where(at), message); }

  static constexpr std::uint32_t kNoCpu = 0xFFFF'FFFF;

  std::string_view text_;
  std::string source_;
  TextTable table_;  // for places
  GoalLines lines_;
  TextLine line_;
  TableErrors errors_;
  Job job_;
  std::vector<bool> begun_;  // ranks
  std::unordered_map<std::string_view, std::uint32_t> names_;
  std::uint64_t other_nics_ = 0;
  // State of the rank that is being read.
  bool in_rank_ = false;
  std::uint32_t rank_ = 0;
  std::vector<JobOp> ops_;
  std::vector<std::uint32_t> cpu_;  // of calcs
  std::unordered_map<std::string_view, std::uint32_t> labels_;
  std::vector<OpPair> requires_;
  std::vector<OpPair> begun_by_;
};

}  // namespace

Imported<Job> parse_goal(std::string_view text, const std::string& source) {
  return GoalParser(text, source).parse();
}

Imported<Job> read_goal_file(const std::string& path) {
  const config::Read<std::string> text = read_table_file(path, kLongestJobFile);
  if (!text.ok()) return {{}, text.errors, {}};
  return parse_goal(text.value, path);
}

}  // namespace paceline::workload
