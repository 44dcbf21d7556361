#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/workload/files/hpcc_lines.h"
#include "tools/workload/files/text_table.h"
#include "tools/workload/files/topology_file.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostSimaiNodes = 1'000'000;
constexpr std::uint64_t kMostSimaiLinks = 10'000'000;
constexpr std::uint32_t kMostSimaiPorts = 8;  // fabric.ports
constexpr std::uint32_t kMostSimaiNics = 64;  // fabric.nics

class SimaiParser {
 public:
  SimaiParser(std::string_view text, const std::string& source) : table_(text, source) {}

  config::Read<TopologyFile> parse() {
    if (header() && switches()) {
      for_each_link_line(table_, line_, head_.line, links_, errors_, [this] { link(); });
      check_trailing_lines(table_, "links", links_, errors_);
      if (errors_.empty()) number_ports();
    }
    config::Read<TopologyFile> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = std::move(out_);
    return out;
  }

 private:
  enum class Node : std::uint8_t { gpu, nvswitch, other };

  bool header() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(),
                  "empty: expected `nodes gpus_per_server nvswitches switches links gpu_type`");
      return false;
    }
    head_ = line_.words.front();
    const auto& w = line_.words;
    if (w.size() != 6) {
      errors_.add(table_.where(head_),
                  fmt::format("{} columns: expected 6, `nodes gpus_per_server nvswitches switches "
                              "links gpu_type`",
                              w.size()));
      return false;
    }
    std::uint64_t nics = 0;
    bool good = read_integer(table_, w[0], "nodes", 2, kMostSimaiNodes, nodes_, errors_);
    good = read_integer(table_, w[1], "gpus_per_server", 1, kMostSimaiNics, nics, errors_) && good;
    good =
        read_integer(table_, w[2], "nvswitches", 0, kMostSimaiNodes, nvswitches_, errors_) && good;
    good = read_integer(table_, w[3], "switches", 1, kMostSimaiNodes, switches_, errors_) && good;
    good = read_integer(table_, w[4], "links", 1, kMostSimaiLinks, links_, errors_) && good;
    if (!good) return false;
    if (nodes_ < nvswitches_ + switches_ + 2) {
      errors_.add(table_.where(w[0]),
                  fmt::format("nodes = {}: {} NVLink switches and {} switches leave no two GPUs",
                              nodes_, nvswitches_, switches_));
      return false;
    }
    gpus_ = nodes_ - nvswitches_ - switches_;
    if (gpus_ % nics != 0) {
      errors_.add(
          table_.where(w[1]),
          fmt::format("gpus_per_server = {}: {} GPUs are not a multiple of it", nics, gpus_));
      return false;
    }
    out_.nics = static_cast<std::uint32_t>(nics);
    out_.nvswitches = static_cast<std::uint32_t>(nvswitches_);
    return true;
  }

  bool switches() {
    const std::uint64_t announced = nvswitches_ + switches_;
    if (!table_.next(line_)) {
      errors_.add(table_.end(),
                  fmt::format("truncated: expected the numbers of {} switches", announced));
      return false;
    }
    if (line_.words.size() != announced) {
      errors_.add(table_.behind(line_), fmt::format("{} switch numbers: line {} announces {}",
                                                    line_.words.size(), head_.line, announced));
      return false;
    }
    kinds_.assign(nodes_, Node::gpu);
    std::vector<std::uint32_t> others;
    for (const Word& w : line_.words) {
      std::uint64_t id = 0;
      // GPUs come first, so that a number says which server a GPU is in.
      if (!read_integer(table_, w, "switch", gpus_, nodes_ - 1, id, errors_)) continue;
      if (kinds_[id] != Node::gpu) {
        errors_.add(table_.where(w), fmt::format("switch {} is named twice", id));
        continue;
      }
      const bool nv = static_cast<std::uint64_t>(&w - line_.words.data()) < nvswitches_;
      kinds_[id] = nv ? Node::nvswitch : Node::other;
      if (!nv) others.push_back(static_cast<std::uint32_t>(id));
    }
    if (!errors_.empty()) return false;
    std::sort(others.begin(), others.end());
    std::vector<std::uint32_t> gpus(gpus_);
    std::iota(gpus.begin(), gpus.end(), 0U);
    out_.numbers = NodeNumbers(std::move(gpus), std::move(others));
    return true;
  }

  // A link's ends stay numbers of the file until the number of ports is known.
  void link() {
    config::LinkSpec link;
    const auto& w = line_.words;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    const bool both = read_integer(table_, w[0], "a", 0, nodes_ - 1, a, errors_) &&
                      read_integer(table_, w[1], "b", 0, nodes_ - 1, b, errors_);
    read_link_figures(table_, w, link, errors_);
    if (!both) return;
    if (kinds_[a] > kinds_[b]) std::swap(a, b);  // GPU, NVLink switch, switch
    if (a == b) {
      errors_.add(table_.where(w[0]), fmt::format("a link from node {} to itself", a));
      return;
    }
    if (kinds_[b] == Node::gpu || kinds_[a] == Node::nvswitch) {
      errors_.add(table_.where(w[0]),
                  fmt::format("nodes {} and {}: a GPU is linked to switches, an NVLink switch to "
                              "GPUs",
                              w[0].text, w[1].text));
      return;
    }
    if (kinds_[b] == Node::nvswitch) {
      if (out_.nvlinks++ == 0) {
        out_.nvlink_rate = link.rate;
        out_.nvlink_delay = link.delay;
      }
      return;
    }
    link.a = static_cast<std::uint32_t>(a);
    link.b = static_cast<std::uint32_t>(b);
    out_.links.push_back(link);
    words_.push_back(w[0]);
  }

  void number_ports() {
    std::vector<std::uint32_t> ports(gpus_);
    for (std::size_t i = 0; i < out_.links.size(); ++i) {
      if (kinds_[out_.links[i].a] != Node::gpu) continue;
      if (++ports[out_.links[i].a] <= kMostSimaiPorts) continue;
      errors_.add(table_.where(words_[i]), fmt::format("GPU {} has more than {} links to switches",
                                                       out_.links[i].a, kMostSimaiPorts));
      return;
    }
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
      if (ports[gpu] != 0 && ports[gpu] == ports[0]) continue;
      errors_.add(table_.where(head_),
                  fmt::format("GPU {} has {} links to switches, GPU 0 has {}: expected the same "
                              "number, at least 1, for all",
                              gpu, ports[gpu], ports[0]));
      return;
    }
    out_.ports = ports[0];
    out_.numbers.set_servers(out_.nics, out_.ports);
    std::fill(ports.begin(), ports.end(), 0U);
    for (config::LinkSpec& link : out_.links) {
      if (kinds_[link.a] == Node::gpu) {
        const std::uint32_t port = ports[link.a]++;
        link.a = port * out_.numbers.hosts() + out_.numbers.host_index(link.a);
      } else {
        link.a = out_.numbers.node_index(link.a);
      }
      link.b = out_.numbers.node_index(link.b);
    }
  }

  TextTable table_;
  TextLine line_;
  TableErrors errors_;
  Word head_;
  std::uint64_t nodes_ = 0, nvswitches_ = 0, switches_ = 0, links_ = 0, gpus_ = 0;
  std::vector<Node> kinds_;
  std::vector<Word> words_;  // where each of the links stands
  TopologyFile out_;
};

}  // namespace

config::Read<TopologyFile> parse_simai_topology(std::string_view text, const std::string& source) {
  return SimaiParser(text, source).parse();
}

config::Read<TopologyFile> parse_topology_file(std::string_view text, const std::string& source) {
  TextTable table(text, source);
  TextLine first;
  if (table.next(first) && first.words.size() == 6) return parse_simai_topology(text, source);
  config::Read<HpccTopology> read = parse_hpcc_topology(text, source);
  config::Read<TopologyFile> out;
  out.errors = std::move(read.errors);
  out.value.numbers = std::move(read.value.numbers);
  out.value.links = std::move(read.value.links);
  return out;
}

config::Read<TopologyFile> read_topology_file(const std::string& path) {
  const config::Read<std::string> text = read_table_file(path, kLongestHpccFile);
  if (!text.ok()) return {{}, text.errors};
  return parse_topology_file(text.value, path);
}

}  // namespace paceline::workload
