#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dataplane/config/toml/quantity.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/hpcc_format.h"
#include "tools/workload/files/hpcc_lines.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostFlows = 1ULL << 24;
constexpr std::uint64_t kMostBytes = 1'000'000'000'000'000;
constexpr int kSecondInPicos = 12;  // power of ten

class FlowParser {
 public:
  FlowParser(std::string_view text, const std::string& source, const NodeNumbers& numbers)
      : text_(text), table_(text, source), numbers_(numbers) {
    for (std::uint32_t i = 0; i < numbers.endpoints() + numbers.switches(); ++i) {
      largest_ = std::max(largest_, numbers.number(i));
    }
  }

  config::Read<std::vector<HpccFlow>> parse() {
    lines();
    config::Read<std::vector<HpccFlow>> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(flows_);
    return out;
  }

 private:
  void lines() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(), "empty: expected the number of flows");
      return;
    }
    std::uint64_t count = 0;
    const Word head = line_.words.front();
    const bool counts = line_.words.size() == 1 && is_whole(head.text);
    if (!counts && report_known_format(text_, table_.where(head),
                                       "a flow list of the HPCC simulator, whose first line is the "
                                       "number of flows",
                                       errors_)) {
      return;
    }
    if (line_.words.size() != 1) {
      errors_.add(table_.where(line_.words[1]),
                  fmt::format("{} columns: expected 1, the number of flows", line_.words.size()));
      return;
    }
    if (!read_integer(table_, head, "count", 1, kMostFlows, count, errors_)) return;
    for (std::uint64_t i = 0; i < count && !errors_.full(); ++i) {
      if (!table_.next(line_)) {
        errors_.add(table_.end(),
                    fmt::format("truncated: line {} announces {} flows, the file has {}", head.line,
                                count, i));
        return;
      }
      if (line_.words.size() != 6) {
        errors_.add(table_.behind(line_),
                    fmt::format("{} columns: expected 6, `src dst pg dport bytes start_seconds`",
                                line_.words.size()));
        continue;
      }
      flow();
    }
    check_trailing_lines(table_, "flows", count, errors_);
  }

  static bool is_whole(std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  bool host(const Word& word, std::string_view what, std::uint32_t& out) {
    std::uint64_t number = 0;
    if (!read_integer(table_, word, what, 0, largest_, number, errors_)) return false;
    out = numbers_.rank(static_cast<std::uint32_t>(number));
    if (out != NodeNumbers::kNone) return true;
    errors_.add(table_.where(word),
                fmt::format("{} = {}: a switch; flows run between hosts", what, word.text));
    return false;
  }

  void flow() {
    const auto& w = line_.words;
    HpccFlow f;
    const bool src = host(w[0], "src", f.src);
    const bool dst = host(w[1], "dst", f.dst);
    if (src && dst && f.src == f.dst) {
      errors_.add(table_.where(w[1]),
                  fmt::format("dst = {}: a flow from host {} to itself", w[1].text, w[0].text));
    }
    // The top class carries ACKs and control messages.
    std::uint64_t pg = 0, port = 0;
    read_integer(table_, w[2], "pg", 0, kControlClass - 1, pg, errors_);
    read_integer(table_, w[3], "dport", 0, std::numeric_limits<std::uint16_t>::max(), port,
                 errors_);
    read_integer(table_, w[4], "bytes", 1, kMostBytes, f.bytes, errors_);
    const auto start = config::parse_decimal(w[5].text, kSecondInPicos);
    if (!start.ok()) {
      errors_.add(table_.where(w[5]),
                  fmt::format("start_seconds = \"{}\": {}; expected seconds, at "
                              "least 0, to at most 12 decimals",
                              w[5].text, start.error));
    }
    f.priority_group = static_cast<std::uint8_t>(pg);
    f.dst_port = static_cast<std::uint16_t>(port);
    f.start = Picos{start.value};
    flows_.push_back(f);
  }

  std::string_view text_;
  TextTable table_;
  const NodeNumbers& numbers_;
  std::uint32_t largest_ = 0;
  TextLine line_;
  TableErrors errors_;
  std::vector<HpccFlow> flows_;
};

// Seconds with as many decimals as it takes.
std::string seconds(Picos t) {
  std::string out =
      fmt::format("{}.{:012}", t.count / 1'000'000'000'000, t.count % 1'000'000'000'000);
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace

config::Read<std::vector<HpccFlow>> parse_hpcc_flows(std::string_view text,
                                                     const std::string& source,
                                                     const NodeNumbers& numbers) {
  return FlowParser(text, source, numbers).parse();
}

config::Read<std::vector<HpccFlow>> read_hpcc_flows(const std::string& path,
                                                    const NodeNumbers& numbers) {
  const config::Read<std::string> text = read_table_file(path, kLongestHpccFile);
  if (!text.ok()) return {{}, text.errors};
  return parse_hpcc_flows(text.value, path, numbers);
}

std::string write_hpcc_flows(const std::vector<HpccFlow>& flows, const NodeNumbers& numbers) {
  std::string out = fmt::format("{}\n", flows.size());
  for (const HpccFlow& f : flows) {
    out += fmt::format("{} {} {} {} {} {}\n", numbers.number_of_rank(f.src),
                       numbers.number_of_rank(f.dst), unsigned{f.priority_group}, f.dst_port,
                       f.bytes, seconds(f.start));
  }
  return out;
}

}  // namespace paceline::workload
