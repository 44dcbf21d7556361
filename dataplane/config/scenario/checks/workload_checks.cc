// Rules between the keys of the workload, and between these and the fabric's.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/checks/key_checks.h"
#include "dataplane/config/scenario/checks/scenario_checks.h"
#include "dataplane/config/server_shape.h"

namespace paceline::config {

namespace {

class WorkloadChecks : private KeyChecks {
 public:
  using KeyChecks::KeyChecks;

  void run() {
    check_servers();
    if (context_.has_workload) check_kind();
  }

 private:
  void check_servers() {
    if (hosts_known() && s_.fabric.nics == 1 && given_.usable({"fabric.nics"})) {
      refuse({"fabric.nvlink_rate", "fabric.nvlink_latency", "workload.pxn", "workload.per_rail"},
             "fabric.nics = 1; it is for servers of several NICs");
    }
    const WorkloadConfig& w = s_.workload;
    if (w.per_rail) {
      refuse({"workload.placement", "workload.placement_file", "workload.pxn"},
             "workload.per_rail = true: the ranks of a rail are its servers");
    }
    if (given_.given("workload.placement_file")) {
      require(w.placement == "file", {"workload.placement", "workload.placement_file"},
              fmt::format("workload.placement = \"{}\" contradicts workload.placement_file; "
                          "allowed with it is \"file\"",
                          w.placement));
    }
    require(w.placement != "file" || !w.placement_file.empty(),
            {"workload.placement", "workload.placement_file"},
            "workload.placement = \"file\" needs workload.placement_file");
  }

  void check_kind() {
    const WorkloadConfig& w = s_.workload;
    if (!given_.usable({"workload.kind"})) return;
    const std::uint32_t ranks = w.per_rail ? s_.fabric.hosts / s_.fabric.nics : s_.fabric.hosts;
    if (w.kind == "incast" && hosts_known()) {
      require(w.receiver < ranks, {"workload.receiver", "fabric.hosts"},
              fmt::format("workload.receiver = {}: no such host, allowed is 0 .. {}", w.receiver,
                          ranks - 1));
      require_senders(ranks);
    } else if (w.kind == "permutation" && hosts_known()) {
      require(w.shift < ranks, {"workload.shift", "fabric.hosts"},
              fmt::format("workload.shift = {}: allowed is 0 .. {}", w.shift, ranks - 1));
    } else if (w.kind == "open_loop") {
      if (given_.given("workload.cdf") && given_.given("workload.cdf_file")) {
        require(
            w.cdf == "file", {"workload.cdf", "workload.cdf_file"},
            fmt::format("workload.cdf = \"{}\" contradicts workload.cdf_file; allowed with it is "
                        "\"file\"",
                        w.cdf));
      }
      require(w.cdf != "file" || !w.cdf_file.empty(), {"workload.cdf", "workload.cdf_file"},
              "workload.cdf = \"file\" needs workload.cdf_file");
      check_incasts(ranks);
    } else if (w.kind == "ring_all_reduce") {
      const bool both = w.all_reduce_bytes != 0 && !w.model.empty();
      const bool none = w.all_reduce_bytes == 0 && w.model.empty();
      require(!both && !none, {"workload.all_reduce_bytes", "workload.model", "workload.kind"},
              fmt::format(
                  "ring_all_reduce takes either workload.all_reduce_bytes or workload.model; {}",
                  both ? "both are given" : "neither is"));
    } else if (w.kind == "flows") {
      require(!w.flows_file.empty(), {"workload.flows_file", "workload.kind"},
              "workload.kind = \"flows\" needs workload.flows_file");
    } else if (w.kind == "htsim") {
      require(!w.matrix_file.empty(), {"workload.matrix_file", "workload.kind"},
              "workload.kind = \"htsim\" needs workload.matrix_file");
    } else if (w.kind == "job") {
      check_job();
    }
  }

  void check_job() {
    const JobConfig& job = s_.workload.job;
    const bool collective = job.format == "collective";
    const bool model = job.format == "model";
    if (model) {
      refuse({"workload.job.file"}, "workload.job.format = \"model\"");
    } else {
      require(collective == job.file.empty(), {"workload.job.file", "workload.job.format"},
              collective ? "workload.job.file needs workload.job.format, which says what it is"
                         : fmt::format("workload.job.format = \"{}\" needs workload.job.file",
                                       job.format));
    }
    const bool inference = job.format == "inference";
    const std::string format = fmt::format("workload.job.format = \"{}\"", job.format);
    for (const KeySpec& key : scenario_keys()) {
      if ((!model && key.table() == "workload.job.model") ||
          (!inference && key.table() == "workload.job.inference")) {
        refuse({key.path}, format);
      }
    }
    if (!collective) {
      refuse({"workload.job.operation", "workload.job.bytes", "workload.job.compute"}, format);
    }
    check_skew(format);
    if (inference || job.format == "goal" || job.format == "chakra") {
      refuse({"workload.job.iterations"}, format);
    }
    // The scheduler plans with tokens_per_second.
    if (inference) refuse({"workload.job.compute_scale"}, format);
    require(job.groups_file.empty() || job.format == "chakra", {"workload.job.groups_file"},
            "workload.job.groups_file is of workload.job.format = \"chakra\"");
    require(std::has_single_bit(job.aggregation) || job.aggregation == 0,
            {"workload.job.aggregation"},
            fmt::format("workload.job.aggregation = {}: allowed are 0 and powers of two",
                        job.aggregation));
    if (!hosts_known()) return;
    const std::string storage = storage_error(s_);
    require(storage.empty(), {"workload.background.storage_nics", "fabric.hosts"}, storage);
    const std::uint32_t ranks = std::max(1U, job_ranks(s_));
    require(job.straggler < ranks, {"workload.job.straggler", "fabric.hosts"},
            fmt::format("workload.job.straggler = {}: no such rank, allowed is 0 .. {}",
                        job.straggler, ranks - 1));
  }

  // It is for all-to-alls, of a collective or of a model's experts.
  void check_skew(const std::string& format) {
    const JobConfig& job = s_.workload.job;
    if (job.format == "collective") {
      if (job.operation == "all_to_all") return;
      refuse({"workload.job.skew"},
             fmt::format("workload.job.operation = \"{}\"; it is for all_to_all", job.operation));
    } else if (job.format == "model") {
      if (job.model.ep > 1) return;
      refuse({"workload.job.skew"}, "workload.job.model.ep = 1; it is for 2 or more");
    } else {
      refuse({"workload.job.skew"}, format);
    }
  }

  void require_senders(std::uint32_t ranks) {
    require(s_.workload.fan_in <= ranks - 1, {"workload.fan_in", "fabric.hosts"},
            fmt::format(
                "workload.fan_in = {}: {} = {} leaves at most {} senders", s_.workload.fan_in,
                s_.workload.per_rail ? "the number of servers" : "fabric.hosts", ranks, ranks - 1));
  }

  // Incasts on top of an open loop.
  void check_incasts(std::uint32_t ranks) {
    const WorkloadConfig& w = s_.workload;
    if (!given_.usable({"workload.incast_load"})) return;
    for (const std::string_view key : {"workload.fan_in", "workload.message_bytes"}) {
      const GivenKeys::Entry* entry = given_.find(key);
      if (w.incast_load > 0 || entry == nullptr || entry->inherited) continue;
      context_.errors->add(entry->where,
                           fmt::format("{} does nothing with workload.kind = \"open_loop\" without "
                                       "workload.incast_load",
                                       key));
    }
    if (w.incast_load == 0 || !hosts_known()) return;
    require_senders(ranks);
  }
};

}  // namespace

void check_workload(const Scenario& scenario, const GivenKeys& given, const Where& start,
                    ReadContext& context) {
  WorkloadChecks(scenario, given, start, context).run();
}

}  // namespace paceline::config
