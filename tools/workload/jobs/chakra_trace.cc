#include "tools/workload/jobs/chakra_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include "tools/workload/files/text_table.h"
#include "tools/workload/jobs/chakra/chakra_node.h"
#include "tools/workload/jobs/chakra/chakra_ops.h"
#include "tools/workload/jobs/import_limits.h"
#include "tools/workload/jobs/issue_order.h"

namespace paceline::workload {

namespace {

class ChakraImporter {
 public:
  ChakraImporter(std::uint32_t ranks, const ChakraOptions& options)
      : options_(options), make_(job_) {
    job_.ranks = ranks;
  }

  bool add_groups(const ChakraFile& groups) {
    file_errors_ = make_.add_groups(groups.bytes, groups.source);
    return file_errors_.empty();
  }

  void add_rank(std::uint32_t rank, const ChakraFile& trace) {
    rank_ = rank;
    path_ = trace.source;
    ops_.clear();
    ids_.clear();
    named_waits_.clear();
    index_.clear();
    if (messages(trace.bytes)) append();
  }

  // Errors of files that cannot be read.
  void add_errors(const std::vector<std::string>& errors) {
    file_errors_.insert(file_errors_.end(), errors.begin(), errors.end());
  }

  bool full() const { return errors_.full(); }

  Imported<Job> finish() {
    Imported<Job> out;
    out.errors = file_errors_;
    const std::vector<std::string> list = errors_.list();
    out.errors.insert(out.errors.end(), list.begin(), list.end());
    if (!out.ok()) return out;
    out.warnings = warnings();
    out.value = std::move(job_);
    return out;
  }

 private:
  struct NamedWait {
    std::uint32_t op = 0;
    std::uint64_t id = 0;
  };

  bool messages(std::string_view bytes) {
    ProtobufReader file(bytes);
    ProtobufField message;
    if (bytes.empty()) return fail(0, "the file is empty: expected an execution trace of Chakra");
    if (!file.delimited(message)) return fail(file.error());
    if (!metadata(message)) return false;
    ChakraNode node;
    ProtobufError error;
    while (!file.at_end()) {
      if (!file.delimited(message)) return fail(file.error());
      if (!read_chakra_node(message, node, error)) return fail(error);
      if (!add(node)) return false;
    }
    return true;
  }

  // Nothing in it matters to the job.
  bool metadata(const ProtobufField& message) {
    ProtobufReader reader(message.bytes, message.data_offset);
    ProtobufField field;
    while (reader.next(field)) {
      const bool known = field.number == 1 || field.number == 2;
      if (known && field.type != WireType::bytes) {
        return fail(field.offset,
                    fmt::format("field {} of the metadata: expected a text or a message; this is "
                                "no execution trace of Chakra",
                                field.number));
      }
    }
    return reader.error().what.empty() || fail(reader.error());
  }

  bool add(const ChakraNode& node) {
    if (job_.ops.size() + ops_.size() == kMostJobOps) {
      return wrong(node, fmt::format("more than {} nodes", kMostJobOps));
    }
    if (!index_.try_emplace(node.id, static_cast<std::uint32_t>(ops_.size())).second) {
      return wrong(node, "another node has this id");
    }
    std::string error;
    const std::optional<JobOp> op = make_.make(node, rank_, error);
    if (!op) return wrong(node, error);
    const auto at = static_cast<std::uint32_t>(ops_.size());
    ops_.push_back(*op);
    ids_.push_back(node.id);
    for (const std::uint64_t id : node.waits) named_waits_.push_back({at, id});
    if (job_.waits.size() + named_waits_.size() > kMostJobWaits) {
      return wrong(node, fmt::format("more than {} dependencies", kMostJobWaits));
    }
    return true;
  }

  // The ops of a rank in their order, and what each waits for.
  void append() {
    std::vector<OpPair> waits;
    for (const auto& [op, id] : named_waits_) {
      const auto at = index_.find(id);
      if (at != index_.end()) {
        waits.emplace_back(op, at->second);
      } else if (++missing_; !options_.drop_missing) {
        wrong_op(op, fmt::format("waits for node {}: expected a node of the file", id));
      }
    }
    sort_once(waits);
    const auto count = static_cast<std::uint32_t>(ops_.size());
    std::vector<std::uint32_t> order = issue_order(count, waits);
    if (order.size() != count && options_.drop_circular) {
      drop_circular(order, waits);
      order = issue_order(count, waits);
    }
    if (order.size() != count) {
      const std::vector<std::uint32_t> circle = find_circle(count, waits, order);
      wrong_op(circle[0],
               fmt::format("waits for itself, by way of node {}", ids_[circle[1 % circle.size()]]));
      return;
    }
    const auto base = static_cast<std::uint32_t>(job_.ops.size());
    std::vector<std::uint32_t> place(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      place[order[i]] = base + i;
      job_.ops.push_back(ops_[order[i]]);
    }
    for (auto& [op, before] : waits) {
      op = place[op];
      before = place[before];
    }
    std::sort(waits.begin(), waits.end());
    job_.waits.insert(job_.waits.end(), waits.begin(), waits.end());
  }

  void drop_circular(const std::vector<std::uint32_t>& order, std::vector<OpPair>& waits) {
    std::vector<bool> ordered(ops_.size());
    for (const std::uint32_t op : order) ordered[op] = true;
    circular_ += std::erase_if(waits, [&](const OpPair& wait) {
      return !ordered[wait.second] && wait.second >= wait.first;
    });
  }

  std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    const auto add_count = [&](std::uint64_t count, std::string_view what) {
      if (count != 0) out.push_back(fmt::format("{} {}", count, what));
    };
    add_count(make_.remarks().launches,
              "collective nodes without comm_type are computations of their duration");
    add_count(make_.remarks().barriers, "barriers are all-reduces of 1 byte");
    add_count(make_.remarks().unknown_durations,
              "nodes give num_ops and no duration: they take no time here");
    add_count(missing_, "dependencies on nodes that are not in the file are dropped");
    add_count(circular_, "dependencies that lead in a circle are dropped");
    return out;
  }

  bool fail(std::uint64_t offset, const std::string& what) {
    errors_.add({path_, 0, 0}, fmt::format("byte {}: {}", offset, what));
    return false;
  }
  bool fail(const ProtobufError& error) { return fail(error.offset, error.what); }
  bool wrong(const ChakraNode& node, const std::string& what) {
    return fail(node.offset, fmt::format("node {}: {}", node.id, what));
  }
  void wrong_op(std::uint32_t op, const std::string& what) {
    errors_.add({path_, 0, 0}, fmt::format("node {}: {}", ids_[op], what));
  }

  const ChakraOptions& options_;
  Job job_;
  TableErrors errors_;
  std::vector<std::string> file_errors_;  // of files that cannot be read, and of groups
  ChakraOps make_;
  std::uint64_t missing_ = 0;   // dependencies
  std::uint64_t circular_ = 0;  // the same
  // State of the rank that is being read.
  std::uint32_t rank_ = 0;
  std::string path_;
  std::vector<JobOp> ops_;
  std::vector<std::uint64_t> ids_;
  std::vector<NamedWait> named_waits_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // by id
};

Imported<Job> wrong_number(std::size_t traces) {
  return {{}, {fmt::format("{} traces: expected 1 to {}", traces, kMostJobRanks)}, {}};
}

}  // namespace

Imported<Job> parse_chakra_traces(std::span<const ChakraFile> traces, const ChakraFile& groups,
                                  const ChakraOptions& options) {
  if (traces.empty() || traces.size() > kMostJobRanks) return wrong_number(traces.size());
  ChakraImporter importer(static_cast<std::uint32_t>(traces.size()), options);
  if (groups.bytes.empty() || importer.add_groups(groups)) {
    for (std::uint32_t rank = 0; rank < traces.size() && !importer.full(); ++rank) {
      importer.add_rank(rank, traces[rank]);
    }
  }
  return importer.finish();
}

Imported<Job> read_chakra_traces(std::span<const std::string> paths, const std::string& groups_path,
                                 const ChakraOptions& options) {
  if (paths.empty() || paths.size() > kMostJobRanks) return wrong_number(paths.size());
  ChakraImporter importer(static_cast<std::uint32_t>(paths.size()), options);
  if (!groups_path.empty()) {
    const auto groups = config::read_text_file(groups_path, kLongestJobFile);
    if (!groups.ok()) return {{}, groups.errors, {}};
    if (!importer.add_groups({groups_path, groups.value})) return importer.finish();
  }
  for (std::uint32_t rank = 0; rank < paths.size() && !importer.full(); ++rank) {
    const auto file = config::read_text_file(paths[rank], kLongestJobFile);
    if (!file.ok()) {
      importer.add_errors(file.errors);
      break;
    }
    importer.add_rank(rank, {paths[rank], file.value});
  }
  return importer.finish();
}

Imported<std::vector<std::string>> find_chakra_traces(const std::string& prefix) {
  Imported<std::vector<std::string>> out;
  const std::filesystem::path path(prefix);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string stem = path.filename().string() + ".";
  constexpr std::string_view kEnding = ".et";
  std::map<std::uint32_t, std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(stem) || !name.ends_with(kEnding) ||
        name.size() <= stem.size() + kEnding.size()) {
      continue;
    }
    const char* const first = name.data() + stem.size();
    const char* const last = name.data() + name.size() - kEnding.size();
    std::uint32_t rank = 0;
    const auto [stop, code] = std::from_chars(first, last, rank);
    if (code == std::errc{} && stop == last)
      files.emplace(rank, prefix + name.substr(stem.size() - 1));
  }
  if (error) out.errors.push_back(fmt::format("{}: {}", folder.string(), error.message()));
  if (out.ok() && files.empty()) {
    out.errors.push_back(fmt::format("{}: expected files {}.RANK.et", folder.string(), prefix));
  }
  for (const auto& [rank, file] : files) {
    if (rank != out.value.size()) {
      out.errors.push_back(
          fmt::format("{}: expected {}.{}.et, too", file, prefix, out.value.size()));
      break;
    }
    out.value.push_back(file);
  }
  return out;
}

}  // namespace paceline::workload
