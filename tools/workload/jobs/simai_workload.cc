#include "tools/workload/jobs/simai_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

constexpr std::pair<std::string_view, CollectiveOp> kSimaiOps[] = {
    {"ALLREDUCE", CollectiveOp::all_reduce},
    {"ALLGATHER", CollectiveOp::all_gather},
    {"REDUCESCATTER", CollectiveOp::reduce_scatter},
    {"ALLTOALL", CollectiveOp::all_to_all},
    {"BROADCAST", CollectiveOp::broadcast},
    // Their reader finds ALLREDUCE in it before it looks for this word.
    {"ALLREDUCEALLTOALL", CollectiveOp::all_reduce},
};

constexpr std::uint64_t kMostLayers = 1ULL << 24;
constexpr std::size_t kLayerColumns = 12;
constexpr std::string_view kSimaiFile = "a workload of SimAI or ASTRA-sim";

class SimaiWorkloadParser {
 public:
  SimaiWorkloadParser(std::string_view text, const std::string& source, const SimaiOptions& options)
      : text_(text), source_(source), options_(options), table_(text, source) {}

  Imported<SimaiWorkload> parse() {
    const std::size_t nul = text_.find('\0');
    if (nul != std::string_view::npos) {
      errors_.add({source_, 0, 0}, fmt::format("byte {}: a NUL byte: expected text", nul));
    } else if (header() && layer_count()) {
      while (!errors_.full() && table_.next(line_)) layer();
      if (!errors_.full()) check_layers();
      if (errors_.empty()) check_groups();
    }
    Imported<SimaiWorkload> out;
    out.errors = errors_.list();
    if (!out.ok()) return out;
    out.warnings = warnings();
    out.value = std::move(out_);
    return out;
  }

 private:
  bool header() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(), fmt::format("the file is empty: expected {}", kSimaiFile));
      return false;
    }
    const Word& name = line_.words[0];
    if (!policy(name, out_.policy)) {
      if (report_known_format(text_, table_.where(name), kSimaiFile, errors_)) return false;
      wrong(name,
            fmt::format("policy {}: expected {}", name.text, config::list_names(kSimaiPolicies)));
      return false;
    }
    std::set<std::string_view> given;
    for (std::size_t at = 1; at < line_.words.size();) {
      const Word& key = line_.words[at++];
      std::string_view plain = key.text;
      if (plain.ends_with(':')) plain.remove_suffix(1);
      if (!given.insert(plain).second) wrong(key, fmt::format("{} is given twice", plain));
      if (at == line_.words.size()) {
        errors_.add(table_.behind(line_), fmt::format("expected a number behind {}", key.text));
      } else if (!header_key(key, plain, at)) {
        return false;
      }
    }
    return errors_.empty();
  }

  bool header_key(const Word& key, std::string_view plain, std::size_t& at) {
    constexpr std::uint64_t kMostRounds = 0xFFFF'FFFF;
    const Word& value = line_.words[at];
    const bool colon = key.text.size() != plain.size();
    if (plain == "pp_comm") {
      Word whole = value;  // AICB divides by the degree of tensor parallelism: 25165824.0
      if (whole.text.ends_with(".0")) whole.text.remove_suffix(2);
      read_integer(table_, whole, plain, 0, kMostJobBytes, out_.pp_comm, errors_);
    } else if (colon && plain == "model_parallel_NPU_group") {
      out_.tp = number(value, plain, 1, kMostJobRanks);
    } else if (colon && plain == "ep") {
      out_.ep = number(value, plain, 1, kMostJobRanks);
    } else if (colon && plain == "pp") {
      out_.pp = number(value, plain, 1, kMostJobRanks);
    } else if (colon && plain == "vpp") {
      out_.vpp = number(value, plain, 1, kMostRounds);
    } else if (colon && plain == "ga") {
      out_.ga = number(value, plain, 1, kMostRounds);
    } else if (colon && plain == "all_gpus") {
      out_.all_gpus = number(value, plain, 1, kMostJobRanks);
    } else if (colon && plain == "checkpoints") {
      return layer_list(plain, at, out_.checkpoints);
    } else if (colon && plain == "checkpoint_initiates") {
      return layer_list(plain, at, out_.checkpoint_initiates);
    } else {
      wrong(key, fmt::format("unknown word {}: expected model_parallel_NPU_group:, ep:, pp:, vpp:, "
                             "ga:, all_gpus:, checkpoints:, checkpoint_initiates: or pp_comm",
                             key.text));
      return false;
    }
    ++at;
    return true;
  }

  // COUNT {layer}
  bool layer_list(std::string_view key, std::size_t& at, std::vector<std::uint32_t>& out) {
    const Word& count = line_.words[at];
    const std::uint64_t left = line_.words.size() - at - 1;
    const std::uint32_t layers = number(count, key, 0, left);
    for (std::uint32_t i = 0; i < layers; ++i) {
      out.push_back(number(line_.words[at + 1 + i], key, 0, kMostLayers - 1));
    }
    at += std::size_t{1} + layers;
    return errors_.empty();
  }

  bool layer_count() {
    if (!table_.next(line_)) {
      errors_.add(table_.end(), "expected a line with the number of layers");
      return false;
    }
    if (line_.words.size() != 1) {
      wrong(line_.words[1], "expected a line with the number of layers alone");
      return false;
    }
    count_ = number(line_.words[0], "layers", 1, kMostLayers);
    count_line_ = line_.number;
    return errors_.empty();
  }

  void layer() {
    if (out_.layers.size() == count_) {
      if (!too_many_) {
        wrong(line_.words[0],
              fmt::format("layers = {} in line {}: here is one more", count_, count_line_));
      }
      too_many_ = true;
      return;
    }
    const bool own_policy = out_.policy == SimaiPolicy::hybrid_customized;
    const std::size_t columns = kLayerColumns + (own_policy ? 1 : 0);
    if (line_.words.size() != columns) {
      errors_.add(table_.behind(line_),
                  fmt::format("{} columns: expected {}", line_.words.size(), columns));
      return;
    }
    SimaiLayer& out = out_.layers.emplace_back();
    out.name = line_.words[0].text;
    out.line = line_.number;
    out.policy = out_.policy;
    if (line_.words[1].text != "-1") {
      wrong(line_.words[1], fmt::format("dependency = {}: expected -1", line_.words[1].text));
    }
    phase(2, SimaiGroup::tp, out.forward);
    phase(5, SimaiGroup::tp, out.input_gradient);
    phase(8, SimaiGroup::dp, out.weight_gradient);
    out.update_ns = nanos(line_.words[11], "update");
    if (own_policy && !policy(line_.words[12], out.policy)) {
      wrong(line_.words[12], fmt::format("policy {}: expected {}", line_.words[12].text,
                                         config::list_names(kSimaiPolicies)));
    }
  }

  void phase(std::size_t at, SimaiGroup usual, SimaiPhase& out) {
    out.compute_ns = nanos(line_.words[at], "compute");
    const Word& comm = line_.words[at + 1];
    const Word& bytes = line_.words[at + 2];
    std::string_view kind = comm.text;
    out.group = usual;
    if (kind.ends_with("_DP_EP")) {
      kind.remove_suffix(6);
      out.group = SimaiGroup::dp_ep;
    } else if (kind.ends_with("_EP")) {
      kind.remove_suffix(3);
      out.group = SimaiGroup::ep;
    }
    if (comm.text == "NONE") {
      read_integer(table_, bytes, "bytes of NONE", 0, 0, out.bytes, errors_);
      return;
    }
    const auto* const op = std::find_if(std::begin(kSimaiOps), std::end(kSimaiOps),
                                        [&](const auto& known) { return known.first == kind; });
    if (op == std::end(kSimaiOps)) {
      wrong(comm, fmt::format("{}: expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, "
                              "the last four also with _EP or _DP_EP behind",
                              comm.text));
      return;
    }
    out.op = op->second;
    if (out.op == CollectiveOp::broadcast) ++broadcasts_;
    if (kind == "ALLREDUCEALLTOALL") ++mixed_;
    read_integer(table_, bytes, "bytes", 0, kMostJobBytes, out.bytes, errors_);
  }

  void check_layers() {
    const std::size_t found = out_.layers.size();
    if (!errors_.empty() || found == count_ || (options_.fewer_layers && found != 0)) return;
    errors_.add(table_.end(),
                fmt::format("layers = {} in line {}: the file has {}", count_, count_line_, found));
  }

  void check_groups() {
    if (out_.all_gpus == 0) return;
    const std::uint64_t stage = std::uint64_t{out_.tp} * out_.pp;
    if (out_.all_gpus % stage != 0) {
      errors_.add({source_, 1, 1}, fmt::format("all_gpus = {}: expected a multiple of TP * pp = {}",
                                               out_.all_gpus, stage));
    } else if (out_.all_gpus / stage % out_.ep != 0) {
      errors_.add({source_, 1, 1},
                  fmt::format("ep = {}: expected a divisor of all_gpus / (TP * pp) = {}", out_.ep,
                              out_.all_gpus / stage));
    }
  }

  std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    if (out_.layers.size() != count_) {
      out.push_back(fmt::format("{}:{}: layers = {}: the file has {}", source_, count_line_, count_,
                                out_.layers.size()));
    }
    if ((out_.pp > 1) != (out_.pp_comm != 0)) {
      out.push_back(
          fmt::format("{}: pp = {} and pp_comm = {}: expected pp_comm where pp > 1 and only there",
                      source_, out_.pp, out_.pp_comm));
    }
    if (broadcasts_ != 0) {
      out.push_back(
          fmt::format("{}: {} BROADCAST, which SimAI itself leaves out", source_, broadcasts_));
    }
    if (mixed_ != 0) {
      out.push_back(
          fmt::format("{}: {} ALLREDUCEALLTOALL, which are ALLREDUCE for SimAI", source_, mixed_));
    }
    return out;
  }

  static bool policy(const Word& word, SimaiPolicy& out) {
    const auto* const known =
        std::find(std::begin(kSimaiPolicies), std::end(kSimaiPolicies), word.text);
    if (known == std::end(kSimaiPolicies)) return false;
    out = static_cast<SimaiPolicy>(known - std::begin(kSimaiPolicies));
    return true;
  }

  std::uint64_t nanos(const Word& word, std::string_view what) {
    std::uint64_t value = 0;
    read_integer(table_, word, what, 0, kMostJobNanos, value, errors_);
    return value;
  }

  std::uint32_t number(const Word& word, std::string_view what, std::uint64_t min,
                       std::uint64_t max) {
    std::uint64_t value = min;
    read_integer(table_, word, what, min, max, value, errors_);
    return static_cast<std::uint32_t>(value);
  }

  void wrong(const Word& word, const std::string& message) {
    errors_.add(table_.where(word), message);
  }

  std::string_view text_;
  std::string source_;
  SimaiOptions options_;
  TextTable table_;
  TextLine line_;
  TableErrors errors_;
  SimaiWorkload out_;
  std::uint32_t count_ = 0;  // of layers, in the header
  std::uint32_t count_line_ = 0;
  bool too_many_ = false;
  std::uint64_t broadcasts_ = 0;
  std::uint64_t mixed_ = 0;
};

}  // namespace

Imported<SimaiWorkload> parse_simai_workload(std::string_view text, const std::string& source,
                                             const SimaiOptions& options) {
  return SimaiWorkloadParser(text, source, options).parse();
}

Imported<SimaiWorkload> read_simai_workload(const std::string& path, const SimaiOptions& options) {
  const config::Read<std::string> text = read_table_file(path, kLongestJobFile);
  if (!text.ok()) return {{}, text.errors, {}};
  return parse_simai_workload(text.value, path, options);
}

}  // namespace paceline::workload
