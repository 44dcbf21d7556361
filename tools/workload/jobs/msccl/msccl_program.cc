#include "tools/workload/jobs/msccl/msccl_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostChunks = 1ULL << 20;
constexpr std::uint64_t kMostChannels = 1'024;
constexpr std::size_t kMostStepsOfAll = std::size_t{1} << 20;

constexpr MscclAction kActions[] = {
    {.name = "s", .reads = true, .sends = true},
    {.name = "r", .receives = true, .writes = true},
    {.name = "rcs", .receives = true, .writes = true, .sends = true},
    {.name = "rrc", .receives = true, .reads = true, .writes = true, .sums = true},
    {.name = "rrs", .receives = true, .reads = true, .sums = true, .sends = true},
    {.name = "rrcs", .receives = true, .reads = true, .writes = true, .sums = true, .sends = true},
    {.name = "cpy", .reads = true, .writes = true},
    {.name = "re", .reads = true, .writes = true, .sums = true},
    {.name = "nop"},
};

constexpr std::pair<std::string_view, CollectiveOp> kMscclOps[] = {
    {"allreduce", CollectiveOp::all_reduce},
    {"allgather", CollectiveOp::all_gather},
    {"reduce_scatter", CollectiveOp::reduce_scatter},
    {"reducescatter", CollectiveOp::reduce_scatter},
    {"alltoall", CollectiveOp::all_to_all},
};

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string source, TableErrors& errors)
      : xml_(text), source_(std::move(source)), errors_(errors) {}

  MscclProgram parse() {
    constexpr std::string_view kLevels[] = {"algo", "gpu", "tb", "step"};
    std::size_t level = 0;
    while (!errors_.full() && xml_.next(element_)) {
      if (element_.closes) {
        --level;
        continue;
      }
      if (level == std::size(kLevels) || element_.name != kLevels[level]) {
        wrong(element_.place,
              level == std::size(kLevels)
                  ? fmt::format("<{}>: a step has no elements in it", element_.name)
                  : fmt::format("<{}>: expected <{}>", element_.name, kLevels[level]));
        return {};
      }
      if (!read(level)) return {};
      unknown_attributes();
      ++level;
    }
    if (!xml_.error().empty()) wrong(xml_.error_place(), xml_.error());
    if (errors_.empty()) all_gpus();
    return std::move(out_);
  }

 private:
  // False: the rest cannot be read.
  bool read(std::size_t level) {
    switch (level) {
      case 0:
        return algorithm();
      case 1:
        return gpu();
      case 2:
        return block();
      default:
        return step();
    }
  }

  bool algorithm() {
    out_.name = text("name");
    one_of("proto", {"Simple", "LL", "LL128"});
    out_.channels = number("nchannels", 1, kMostChannels);
    out_.chunks = number("nchunksperloop", 1, kMostChunks);
    const std::uint32_t ranks = number("ngpus", 2, kMostJobRanks);
    const bool in_place = number("inplace", 0, 1) != 0;
    const bool out_of_place = has("outofplace") ? number("outofplace", 0, 1) != 0 : !in_place;
    if (has("minBytes")) out_.min_bytes = wide("minBytes");
    if (has("maxBytes")) out_.max_bytes = wide("maxBytes");
    const std::string coll = text("coll");
    const auto* const op = std::find_if(std::begin(kMscclOps), std::end(kMscclOps),
                                        [&](const auto& known) { return known.first == coll; });
    if (op == std::end(kMscclOps)) {
      wrong(at("coll"), fmt::format("coll = {}: expected allreduce, allgather, reduce_scatter or "
                                    "alltoall",
                                    coll));
    }
    if (!errors_.empty()) return false;
    out_.op = op->second;
    out_.gpus.resize(ranks);
    check_shape(ranks, in_place, out_of_place);
    return errors_.empty();
  }

  void check_shape(std::uint32_t ranks, bool in_place, bool out_of_place) {
    const bool sums =
        out_.op == CollectiveOp::all_reduce || out_.op == CollectiveOp::reduce_scatter;
    if (sums && !in_place) {
      wrong(at("inplace"), "inplace = 0: expected 1: a rank's buffer holds what it contributes");
    }
    if (out_.op == CollectiveOp::all_to_all && !out_of_place) {
      wrong(at("inplace"), "expected outofplace = 1: input and result of alltoall are two buffers");
    }
    if (out_.op == CollectiveOp::all_to_all && out_.chunks != ranks) {
      wrong(at("nchunksperloop"),
            fmt::format("nchunksperloop = {}: expected {}, one for each GPU", out_.chunks, ranks));
    } else if (out_.op != CollectiveOp::all_reduce && out_.chunks % ranks != 0) {
      wrong(at("nchunksperloop"),
            fmt::format("nchunksperloop = {}: expected a multiple of ngpus = {}", out_.chunks,
                        ranks));
    }
  }

  bool gpu() {
    const auto ranks = static_cast<std::uint32_t>(out_.gpus.size());
    const std::uint32_t part = out_.chunks / ranks;
    const std::uint32_t input = out_.op == CollectiveOp::all_gather ? part : out_.chunks;
    const std::uint32_t output = out_.op == CollectiveOp::reduce_scatter ? part : out_.chunks;
    const std::uint32_t id = number("id", 0, ranks - 1);
    gpu_ = &out_.gpus[id];
    if (gpu_->given) wrong(at("id"), fmt::format("gpu {} is given twice", id));
    gpu_->given = true;
    rank_ = id;
    gpu_->chunks[0] = number("i_chunks", 0, input);
    gpu_->chunks[1] = number("o_chunks", 0, output);
    gpu_->chunks[2] = number("s_chunks", 0, kMostChunks);
    return errors_.empty();
  }

  bool block() {
    if (gpu_->blocks.size() == kMostMscclBlocks) {
      wrong(element_.place, fmt::format("more than {} thread blocks", kMostMscclBlocks));
      return false;
    }
    MscclBlock block;
    block.place = element_.place;
    block.id = number("id", 0, kMostMscclBlocks - 1);
    block.send = signed_number("send", static_cast<std::int64_t>(out_.gpus.size()) - 1);
    block.receive = signed_number("recv", static_cast<std::int64_t>(out_.gpus.size()) - 1);
    block.channel = number("chan", 0, out_.channels - 1);
    for (const char* const key : {"send", "recv"}) {
      const std::int64_t peer = *key == 's' ? block.send : block.receive;
      if (peer == rank_) wrong(at(key), fmt::format("{} = {}: expected another GPU", key, peer));
    }
    for (const MscclBlock& other : gpu_->blocks) {
      if (other.id == block.id) {
        wrong(at("id"), fmt::format("tb {} is that of line {}, too", block.id, other.place.line));
      }
    }
    gpu_->blocks.push_back(std::move(block));
    return errors_.empty();
  }

  bool step() {
    MscclBlock& block = gpu_->blocks.back();
    if (block.steps.size() == kMostMscclSteps || ++steps_ > kMostStepsOfAll) {
      wrong(element_.place, fmt::format("more than {} steps in a thread block, or {} in all",
                                        kMostMscclSteps, kMostStepsOfAll));
      return false;
    }
    MscclStep step;
    step.place = element_.place;
    number("s", block.steps.size(), block.steps.size());
    const std::string type = text("type");
    for (const MscclAction& action : kActions) {
      if (action.name == type) step.action = &action;
    }
    if (step.action == nullptr) {
      wrong(at("type"),
            fmt::format("type = {}: expected s, r, rcs, rrc, rrs, rrcs, cpy, re or nop", type));
      return false;
    }
    const MscclAction& action = *step.action;
    const bool moves = action.reads || action.writes;
    step.chunks = number("cnt", moves ? 1 : 0, kMostChunks);
    step.source = buffer_place("srcbuf", "srcoff", action.reads ? step.chunks : 0);
    step.target = buffer_place("dstbuf", "dstoff", action.writes ? step.chunks : 0);
    step.depends_block = signed_number("depid", kMostMscclBlocks - 1);
    step.depends_step = signed_number("deps", kMostMscclSteps - 1);
    number("hasdep", 0, 1);
    if ((step.depends_block < 0) != (step.depends_step < 0)) {
      wrong(at("depid"), fmt::format("depid = {} and deps = {}: expected both or neither as -1",
                                     step.depends_block, step.depends_step));
    }
    if (action.sends && block.send < 0) {
      wrong(at("type"), fmt::format("{} in a thread block with send = -1", action.name));
    }
    if (action.receives && block.receive < 0) {
      wrong(at("type"), fmt::format("{} in a thread block with recv = -1", action.name));
    }
    block.steps.push_back(step);
    return errors_.empty();
  }

  // `used`: chunks that must be within the buffer; 0: the place does not matter.
  MscclPlace buffer_place(const char* buffer_key, const char* offset_key, std::uint32_t used) {
    constexpr std::string_view kBuffers[] = {"i", "o", "s"};
    const std::size_t buffer = one_of(buffer_key, {"i", "o", "s"});
    MscclPlace out{static_cast<MscclBuffer>(buffer), 0};
    const std::int64_t offset = signed_number(offset_key, kMostChunks - 1);
    if (used == 0) return out;
    if (offset < 0 || static_cast<std::uint64_t>(offset) + used > gpu_->chunks[buffer]) {
      wrong(at(offset_key),
            fmt::format("{} = {}, {} chunks: buffer {} of this GPU has {}", offset_key, offset,
                        used, kBuffers[buffer], gpu_->chunks[buffer]));
      return out;
    }
    out.chunk = static_cast<std::uint32_t>(offset);
    return out;
  }

  void all_gpus() {
    for (std::size_t rank = 0; rank < out_.gpus.size() && !errors_.full(); ++rank) {
      if (out_.gpus[rank].given) continue;
      wrong(xml_.place(),
            fmt::format("ngpus = {}: expected <gpu id=\"{}\">, too", out_.gpus.size(), rank));
    }
  }

  const XmlAttribute* find(std::string_view key) const {
    for (const XmlAttribute& attribute : element_.attributes) {
      if (attribute.name == key) return &attribute;
    }
    return nullptr;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  XmlPlace at(std::string_view key) const {
    const XmlAttribute* const found = find(key);
    return found == nullptr ? element_.place : found->place;
  }

  std::string text(std::string_view key) {
    const XmlAttribute* const found = find(key);
    if (found == nullptr) {
      wrong(element_.place, fmt::format("<{}>: expected {}", element_.name, key));
      return {};
    }
    known_.push_back(key);
    return found->value;
  }

  template <class Number>
  Number bounded(std::string_view key, Number min, Number max) {
    const bool given = has(key);
    const std::string value = text(key);
    Number out = min;
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, out);
    if (code == std::errc{} && stop == end && out >= min && out <= max) return out;
    if (given) {
      wrong(at(key),
            fmt::format("{} = \"{}\": expected an integer in [{} .. {}]", key, value, min, max));
    }
    return min;
  }
  std::uint32_t number(std::string_view key, std::uint64_t min, std::uint64_t max) {
    return static_cast<std::uint32_t>(bounded<std::uint64_t>(key, min, max));
  }
  std::uint64_t wide(std::string_view key) { return bounded<std::uint64_t>(key, 0, UINT64_MAX); }
  std::int64_t signed_number(std::string_view key, std::int64_t max) {
    return bounded<std::int64_t>(key, -1, max);
  }

  std::size_t one_of(std::string_view key, const std::vector<std::string_view>& allowed) {
    const bool given = has(key);
    const std::string value = text(key);
    const auto found = std::find(allowed.begin(), allowed.end(), value);
    if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
    if (given) {
      wrong(at(key),
            fmt::format("{} = \"{}\": expected {}", key, value, config::list_names(allowed)));
    }
    return 0;
  }

  void unknown_attributes() {
    for (const XmlAttribute& attribute : element_.attributes) {
      if (std::find(known_.begin(), known_.end(), attribute.name) == known_.end()) {
        wrong(attribute.place,
              fmt::format("unknown attribute {} of <{}>", attribute.name, element_.name));
      }
    }
    known_.clear();
  }

  void wrong(const XmlPlace& place, const std::string& what) {
    errors_.add({source_, place.line, place.column}, what);
  }

  XmlReader xml_;
  std::string source_;
  TableErrors& errors_;
  XmlElement element_;
  std::vector<std::string_view> known_;  // attributes of the element that have been read
  MscclProgram out_;
  MscclGpu* gpu_ = nullptr;
  std::uint32_t rank_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace

MscclProgram parse_msccl_program(std::string_view text, const std::string& source,
                                 TableErrors& errors) {
  return ProgramParser(text, source, errors).parse();
}

}  // namespace paceline::workload
