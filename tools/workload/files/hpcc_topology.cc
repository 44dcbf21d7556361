#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "dataplane/config/toml/quantity.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/hpcc_format.h"
#include "tools/workload/files/hpcc_lines.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostNodes = 1'000'000;
constexpr std::uint64_t kMostLinks = 10'000'000;

std::uint32_t index_of(const std::vector<std::uint32_t>& sorted, std::uint32_t number) {
  const auto it = std::lower_bound(sorted.begin(), sorted.end(), number);
  if (it == sorted.end() || *it != number) return NodeNumbers::kNone;
  return static_cast<std::uint32_t>(it - sorted.begin());
}

class TopologyParser {
 public:
  TopologyParser(std::string_view text, const std::string& source)
      : text_(text), table_(text, source) {}

  config::Read<HpccTopology> parse() {
    if (header() && switches()) {
      for_each_link_line(table_, line_, head_.line, links_, errors_, [this] { link(); });
      check_trailing_lines(table_, "links", links_, errors_);
      if (errors_.empty()) check_hosts();
      if (errors_.empty()) check_reachable();
    }
    config::Read<HpccTopology> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(topology_);
    return out;
  }

 private:
  bool header() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(), "empty: expected `nodes switches links`");
      return false;
    }
    head_ = line_.words.front();
    const bool counts = line_.words.size() == 3 && all_numbers(line_);
    if (!counts &&
        report_known_format(text_, table_.where(head_),
                            "a topology of the HPCC simulator, whose first line is `nodes switches "
                            "links`",
                            errors_)) {
      return false;
    }
    if (line_.words.size() != 3) {
      errors_.add(table_.where(head_), fmt::format("{} columns: expected 3, `nodes switches links`",
                                                   line_.words.size()));
      return false;
    }
    bool good = read_integer(table_, line_.words[0], "nodes", 2, kMostNodes, nodes_, errors_);
    // Two hosts at least, and every host hangs on a switch.
    good = read_integer(table_, line_.words[1], "switches", 1,
                        std::max<std::uint64_t>(nodes_, 3) - 2, switches_, errors_) &&
           good;
    good = read_integer(table_, line_.words[2], "links", 1, kMostLinks, links_, errors_) && good;
    return good;
  }

  bool switches() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(),
                  fmt::format("truncated: expected the numbers of {} switches", switches_));
      return false;
    }
    if (line_.words.size() != switches_) {
      errors_.add(table_.behind(line_), fmt::format("{} switch numbers: line {} announces {}",
                                                    line_.words.size(), head_.line, switches_));
      return false;
    }
    std::vector<std::uint32_t> ids;
    for (const Word& w : line_.words) {
      std::uint64_t id = 0;
      if (!read_integer(table_, w, "switch", 0, nodes_ - 1, id, errors_)) continue;
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) {
        errors_.add(table_.where(w), fmt::format("switch {} is named twice", id));
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
    if (!errors_.empty()) return false;
    std::sort(ids.begin(), ids.end());
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t n = 0; n < nodes_; ++n) {
      if (index_of(ids, n) == NodeNumbers::kNone) hosts.push_back(n);
    }
    topology_.numbers = NodeNumbers(std::move(hosts), std::move(ids));
    return true;
  }

  bool node(const Word& word, std::string_view what, std::uint32_t& out) {
    std::uint64_t number = 0;
    if (!read_integer(table_, word, what, 0, nodes_ - 1, number, errors_)) return false;
    out = topology_.numbers.node_index(static_cast<std::uint32_t>(number));
    return true;
  }

  void link() {
    config::LinkSpec link;
    const auto& w = line_.words;
    const bool a = node(w[0], "a", link.a);
    const bool b = node(w[1], "b", link.b);
    const std::uint32_t hosts = topology_.numbers.hosts();
    if (a && b && link.a == link.b) {
      errors_.add(table_.where(w[0]), fmt::format("a link from node {} to itself", w[0].text));
    } else if (a && b && link.a < hosts && link.b < hosts) {
      errors_.add(table_.where(w[0]), fmt::format("nodes {} and {} are both hosts; a host connects "
                                                  "to a switch",
                                                  w[0].text, w[1].text));
    }
    read_link_figures(table_, w, link, errors_);
    topology_.links.push_back(link);
    link_words_.push_back(w[0]);
  }

  void check_hosts() {
    const std::uint32_t hosts = topology_.numbers.hosts();
    std::vector<std::uint32_t> count(hosts);
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      for (const std::uint32_t end : {topology_.links[i].a, topology_.links[i].b}) {
        if (end < hosts && ++count[end] == 2) {
          errors_.add(table_.where(link_words_[i]),
                      fmt::format("a second link of host {}; a host has one port",
                                  topology_.numbers.number(end)));
        }
      }
    }
    for (std::uint32_t h = 0; h < hosts; ++h) {
      if (count[h] == 0) {
        errors_.add(table_.where(head_), fmt::format("host {} is unreachable: it has no link",
                                                     topology_.numbers.number(h)));
      }
    }
  }

  // Every host hangs on one switch, so hosts reach each other exactly when they are connected.
  void check_reachable() {
    std::vector<std::uint32_t> root(topology_.numbers.nodes());
    std::iota(root.begin(), root.end(), 0U);
    const auto find = [&](std::uint32_t n) {
      while (root[n] != n) n = root[n] = root[root[n]];
      return n;
    };
    for (const config::LinkSpec& l : topology_.links) root[find(l.a)] = find(l.b);
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      const config::LinkSpec& l = topology_.links[i];
      const std::uint32_t host = std::min(l.a, l.b);
      if (host >= topology_.numbers.hosts() || find(host) == find(0)) continue;
      errors_.add(table_.where(link_words_[i]),
                  fmt::format("host {} is unreachable: no path to host {}",
                              topology_.numbers.number(host), topology_.numbers.number(0)));
    }
  }

  std::string_view text_;
  TextTable table_;
  TextLine line_;
  TableErrors errors_;
  Word head_;
  std::uint64_t nodes_ = 0, switches_ = 0, links_ = 0;
  HpccTopology topology_;
  std::vector<Word> link_words_;  // where each link stands
};

}  // namespace

void read_link_figures(const TextTable& table, const std::vector<Word>& words,
                       config::LinkSpec& link, TableErrors& errors) {
  const auto rate = config::parse_rate(words[2].text);
  if (!rate.ok()) {
    errors.add(table.where(words[2]), fmt::format("rate = \"{}\": {}", words[2].text, rate.error));
  } else if (rate.value < rate_from_mbps(1) || rate.value > rate_from_gbps(3200)) {
    errors.add(
        table.where(words[2]),
        fmt::format("rate = \"{}\": out of range, allowed is [1Mb/s .. 3200Gb/s]", words[2].text));
  }
  const auto delay = config::parse_time(words[3].text);
  if (!delay.ok()) {
    errors.add(table.where(words[3]),
               fmt::format("delay = \"{}\": {}", words[3].text, delay.error));
  } else if (delay.value < picos_from_nanos(1) || delay.value > picos_from_micros(1'000'000)) {
    errors.add(table.where(words[3]),
               fmt::format("delay = \"{}\": out of range, allowed is [1ns .. 1s]", words[3].text));
  }
  link.rate = rate.value;
  link.delay = delay.value;
  read_number(table, words[4], "error_rate", 0, 1, link.error_rate, errors);
}

NodeNumbers NodeNumbers::star(std::uint32_t hosts) {
  std::vector<std::uint32_t> ids(hosts);
  std::iota(ids.begin(), ids.end(), 0U);
  return {std::move(ids), {}};
}

std::uint32_t NodeNumbers::rank(std::uint32_t number) const { return index_of(hosts_, number); }

std::uint32_t NodeNumbers::host_index(std::uint32_t number) const {
  const std::uint32_t place = rank(number);
  return place == kNone ? kNone : place % nics_ * (hosts() / nics_) + place / nics_;
}

std::uint32_t NodeNumbers::node_index(std::uint32_t number) const {
  const std::uint32_t host = host_index(number);
  if (host != kNone) return host;
  const std::uint32_t s = index_of(switches_, number);
  return s == kNone ? kNone : endpoints() + s;
}

std::uint32_t NodeNumbers::number(std::uint32_t node_index) const {
  if (node_index >= endpoints()) return switches_[node_index - endpoints()];
  const std::uint32_t servers = hosts() / nics_;
  const std::uint32_t host = node_index % hosts();
  return hosts_[host % servers * nics_ + host / servers];
}

config::Read<HpccTopology> parse_hpcc_topology(std::string_view text, const std::string& source) {
  return TopologyParser(text, source).parse();
}

config::Read<HpccTopology> read_hpcc_topology(const std::string& path) {
  const config::Read<std::string> text = read_table_file(path, kLongestHpccFile);
  if (!text.ok()) return {{}, text.errors};
  return parse_hpcc_topology(text.value, path);
}

std::string write_hpcc_topology(const HpccTopology& topology) {
  const NodeNumbers& numbers = topology.numbers;
  std::string out =
      fmt::format("{} {} {}\n", numbers.nodes(), numbers.switches(), topology.links.size());
  for (std::uint32_t i = 0; i < numbers.switches(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : " ", numbers.number(numbers.hosts() + i));
  }
  out += "\n";
  for (const config::LinkSpec& l : topology.links) {
    std::string rate = config::format_rate(l.rate);
    rate.replace(rate.find("b/s"), 3, "bps");  // as that simulator reads it
    out += fmt::format("{} {} {} {} {}\n", numbers.number(l.a), numbers.number(l.b), rate,
                       config::format_time(l.delay), l.error_rate);
  }
  return out;
}

}  // namespace paceline::workload
