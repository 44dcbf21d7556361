#include "tools/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <utility>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "tools/workload/background.h"
#include "tools/workload/files/topology_file.h"
#include "tools/workload/generators.h"
#include "tools/workload/job_workload.h"
#include "tools/workload/jobs/msccl_file.h"
#include "tools/workload/matrix_plan.h"
#include "tools/workload/models/model_shape.h"

namespace paceline::workload {

namespace {

constexpr std::string_view kTooMany = "about {:.3g} messages: at most {} fit";

void append(std::vector<std::string>& to, std::vector<std::string> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Reads fabric.topology_file into the scenario; false on errors.
bool load_topology(config::Scenario& scenario, WorkloadInputs& inputs,
                   std::vector<std::string>& errors) {
  config::FabricConfig& fabric = scenario.fabric;
  config::Read<TopologyFile> read = read_topology_file(fabric.topology_file);
  if (!read.ok()) {
    append(errors, std::move(read.errors));
    return false;
  }
  inputs.numbers = std::move(read.value.numbers);
  fabric.hosts = inputs.numbers.hosts();
  fabric.switches = inputs.numbers.switches();
  fabric.nics = read.value.nics;
  fabric.ports = read.value.ports;
  fabric.links = std::move(read.value.links);
  inputs.host_rates.assign(fabric.hosts, Rate{});
  for (const config::LinkSpec& l : fabric.links) {
    const std::uint32_t end = std::min(l.a, l.b);
    if (end >= fabric.endpoints()) continue;
    inputs.host_rates[end % fabric.hosts].bps += l.rate.bps;
    if (end == 0) {
      fabric.rate = l.rate;
      fabric.delay = l.delay;
    }
  }
  return true;
}

// Finds links by the topology file's node numbers, "12-20" or "12-20#1".
class LinkFinder {
 public:
  LinkFinder(const config::FabricConfig& fabric, const NodeNumbers& numbers,
             std::vector<std::string>& errors)
      : links_(fabric.links), numbers_(numbers), errors_(errors) {}

  // `key` names the link; `where` is its place. Empty, with an error, if there is no such link.
  std::vector<std::uint32_t> find(std::string_view key, const std::string& written,
                                  const std::string& where) const {
    std::string_view name = written;
    std::uint32_t skip = 0;
    std::uint32_t ends[2] = {};
    bool good = config::take_parallel_number(name, skip);
    const std::size_t dash = name.find('-');
    const std::string_view words[2] = {name.substr(0, dash),
                                       name.substr(std::min(dash, name.size() - 1) + 1)};
    for (std::size_t i = 0; i < 2 && good; ++i) {
      std::uint32_t number = 0;
      const char* const end = words[i].data() + words[i].size();
      const auto [stop, code] = std::from_chars(words[i].data(), end, number);
      good = dash != std::string_view::npos && code == std::errc{} && stop == end;
      if (good) ends[i] = number;
    }
    const auto between = [&](const config::LinkSpec& l) {
      const std::uint32_t a = numbers_.number(l.a);
      const std::uint32_t b = numbers_.number(l.b);
      return (a == ends[0] && b == ends[1]) || (a == ends[1] && b == ends[0]);
    };
    auto at = good ? std::find_if(links_.begin(), links_.end(), between) : links_.end();
    for (; at != links_.end() && skip > 0; --skip) at = std::find_if(at + 1, links_.end(), between);
    if (at != links_.end()) return {static_cast<std::uint32_t>(at - links_.begin())};
    errors_.push_back(fmt::format("{}: {} = \"{}\": {}", where, key, written,
                                  good ? "the topology file has no such link"
                                       : "expected two node numbers of the topology file, such as "
                                         "\"12-20\""));
    return {};
  }

 private:
  const std::vector<config::LinkSpec>& links_;
  const NodeNumbers& numbers_;
  std::vector<std::string>& errors_;
};

// The links of events and faults.
void find_named_links(config::Scenario& scenario, const NodeNumbers& numbers,
                      std::vector<std::string>& errors) {
  const LinkFinder finder(scenario.fabric, numbers, errors);
  for (config::EventConfig& event : scenario.events) {
    event.links = finder.find("event.link", event.link, event.where);
  }
  for (config::FaultConfig& fault : scenario.faults) {
    const config::FaultKindInfo& kind = *config::find_fault_kind(fault.kind);
    if (kind.target == config::FaultTarget::rank) continue;
    fault.links = finder.find("fault.target", fault.target, fault.where);
    if (fault.links.empty()) continue;
    const config::LinkSpec& link = scenario.fabric.links[fault.links.front()];
    const bool of_host = std::min(link.a, link.b) < scenario.fabric.endpoints();
    const std::string wrong = config::target_error(kind, fault.target, fault.links.size(), of_host);
    if (wrong.empty()) continue;
    errors.push_back(
        fmt::format("{}: fault.target = \"{}\": {}", fault.where, fault.target, wrong));
  }
}

// Plans for one scenario, between ranks; the first reason why there is none is kept.
class Planner {
 public:
  // rates: of the ranks' links.
  Planner(const config::Scenario& s, const WorkloadInputs& inputs, std::uint32_t ranks,
          std::span<const Rate> rates, std::uint64_t seed)
      : s_(s), w_(s.workload), inputs_(inputs), hosts_(ranks), rates_(rates), seed_(seed) {}

  config::Read<MessagePlan> plan() {
    config::Read<MessagePlan> out;
    out.value = make();
    out.errors = std::move(errors_);
    return out;
  }

 private:
  template <class... Args>
  MessagePlan refuse(fmt::format_string<Args...> text, Args&&... args) {
    errors_.push_back(fmt::format("scenario \"{}\": {}", s_.name,
                                  fmt::format(text, std::forward<Args>(args)...)));
    return {};
  }

  MessagePlan make() {
    if (hosts_ < 2) return refuse("fabric.hosts = {}: a workload needs at least 2", hosts_);
    if (w_.kind == "incast") return incast_plan();
    if (w_.kind == "all_to_all") return all_to_all_plan();
    if (w_.kind == "permutation") return permutation_plan();
    if (w_.kind == "open_loop") return open_loop_plan();
    if (w_.kind == "ring_all_reduce") return ring_plan();
    if (w_.kind == "flows") return flows_plan();
    if (w_.kind == "htsim") return inputs_.matrix;
    return refuse("workload.kind = \"{}\": allowed is {}", w_.kind,
                  config::list_names(config::workload_kinds()));
  }

  MessagePlan incast_plan() {
    if (w_.receiver >= hosts_) {
      return refuse("workload.receiver = {}: no such host, allowed is 0 .. {}", w_.receiver,
                    hosts_ - 1);
    }
    if (!fan_in_fits()) return bad_fan_in();
    return incast(w_, hosts_, seed_);
  }

  bool fan_in_fits() const { return w_.fan_in != 0 && w_.fan_in < hosts_; }
  MessagePlan bad_fan_in() {
    return refuse("workload.fan_in = {}: {} hosts leave 1 .. {} senders", w_.fan_in, hosts_,
                  hosts_ - 1);
  }

  MessagePlan all_to_all_plan() {
    const std::uint64_t pairs = std::uint64_t{hosts_} * (hosts_ - 1);
    if (pairs > kMostMessages) return too_many(static_cast<double>(pairs));
    constexpr std::uint64_t kExactInDouble = 1ULL << 53;
    if (w_.message_bytes > kExactInDouble / (hosts_ - 1)) {
      return refuse("workload.message_bytes = {}: a host would send more than 2^53 bytes",
                    w_.message_bytes);
    }
    return all_to_all(w_, hosts_, seed_);
  }

  MessagePlan permutation_plan() {
    if (w_.shift < hosts_) return permutation(w_, hosts_, seed_);
    return refuse("workload.shift = {}: allowed is 0 .. {}", w_.shift, hosts_ - 1);
  }

  MessagePlan open_loop_plan() {
    if (inputs_.sizes.points().empty()) return refuse("no flow sizes were loaded");
    if (w_.incast_load > 0 && !fan_in_fits()) return bad_fan_in();
    double expected = 0;
    for (const Rate rate : rates_) {
      const double bytes =
          static_cast<double>(rate.bps) / 8 * (static_cast<double>(w_.window.count) / 1e12);
      expected += bytes * (w_.load / inputs_.sizes.mean() +
                           w_.incast_load / static_cast<double>(w_.message_bytes));
    }
    if (expected > static_cast<double>(kMostMessages) / 2) return too_many(expected);
    return open_loop(w_, rates_, inputs_.sizes, seed_);
  }

  MessagePlan ring_plan() {
    std::vector<std::uint64_t> buckets;
    if (w_.model.empty()) {
      buckets.push_back(
          static_cast<std::uint64_t>(static_cast<double>(w_.all_reduce_bytes) / w_.scale));
    } else if (const TransformerShape* shape = find_model(w_.model)) {
      buckets = gradient_buckets(*shape, w_.scale);
    } else {
      return refuse("workload.model = \"{}\": no such model", w_.model);
    }
    const std::uint64_t least = *std::min_element(buckets.begin(), buckets.end());
    if (least < hosts_) {
      return refuse(
          "workload.scale = {}: leaves a gradient bucket of {} bytes for {} ranks; "
          "at least one byte each is needed",
          w_.scale, least, hosts_);
    }
    // Cheap bound first: counting must not itself take for ever.
    const double steps = 2.0 * (hosts_ - 1) * hosts_ * static_cast<double>(buckets.size());
    if (steps > static_cast<double>(kMostMessages)) return too_many(steps);
    const std::uint64_t count = ring_message_count(w_, buckets, hosts_);
    if (count > kMostMessages) return too_many(static_cast<double>(count));
    return ring_all_reduce(w_, buckets, hosts_, seed_);
  }

  MessagePlan flows_plan() {
    MessagePlan plan;
    for (const HpccFlow& f : inputs_.flows) {
      plan.messages.push_back({.src = f.src,
                               .dst = f.dst,
                               .bytes = f.bytes,
                               .start = f.start,
                               .lane = kNoMessage,
                               .traffic_class = f.priority_group});
    }
    sort_plan(plan);
    return plan;
  }

  MessagePlan too_many(double count) { return refuse(kTooMany, count, kMostMessages); }

  const config::Scenario& s_;
  const config::WorkloadConfig& w_;
  const WorkloadInputs& inputs_;
  std::uint32_t hosts_;
  std::span<const Rate> rates_;
  std::uint64_t seed_;
  std::vector<std::string> errors_;
};

using Plan = config::Read<MessagePlan>;

// One workload over all ranks, on their NICs.
Plan placed_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                 std::uint64_t seed) {
  const config::ServerShape shape = config::server_shape(scenario.fabric);
  const Placement nics = placement_of(scenario, inputs, seed);
  std::vector<Rate> rates;
  for (const std::uint32_t nic : nics) {
    if (nic < inputs.host_rates.size()) rates.push_back(inputs.host_rates[nic]);
  }
  Plan out = Planner(scenario, inputs, shape.all_nics(), rates, seed).plan();
  if (out.ok()) put_on_nics(out.value, nics);
  return out;
}

// The same workload on every rail, whose ranks are its servers.
Plan rails_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                std::uint64_t seed) {
  const config::ServerShape shape = config::server_shape(scenario.fabric);
  Plan out;
  for (std::uint32_t rail = 0; rail < shape.nics; ++rail) {
    const std::uint32_t first_nic = shape.nic_number(0, rail);
    const auto rates = std::span(inputs.host_rates).subspan(first_nic, shape.servers);
    Plan one = Planner(scenario, inputs, shape.servers, rates, mix64(seed + rail)).plan();
    if (!one.ok()) return one;
    const auto first_message = static_cast<std::uint32_t>(out.value.messages.size());
    for (PlannedMessage& m : one.value.messages) {
      m.src += first_nic;
      m.dst += first_nic;
      if (m.after != kNoMessage) m.after += first_message;
      out.value.messages.push_back(m);
    }
    out.value.collectives = std::move(one.value.collectives);
  }
  return out;
}

// Senders that a NIC has at the same time in an all-to-all, which planned for ranks.
void count_senders_of_nics(MessagePlan& plan, const config::ServerShape& shape, bool relayed) {
  const std::uint32_t senders = relayed ? shape.servers - 1 : shape.all_nics() - shape.nics;
  for (PlannedMessage& m : plan.messages) {
    if (m.hint_kind != kHintAllToAll) continue;
    m.hint_degree = static_cast<std::uint16_t>(std::min(senders, 0xFFFFU));
  }
}

}  // namespace

Placement placement_of(const config::Scenario& scenario, const WorkloadInputs& inputs,
                       std::uint64_t seed) {
  const std::string& rule = scenario.workload.placement;
  if (rule == "file") return inputs.placement;
  return place_ranks(rule, config::server_shape(scenario.fabric), seed);
}

config::Read<WorkloadInputs> load_inputs(config::Scenario& scenario) {
  config::Read<WorkloadInputs> out;
  bool topology_known = true;
  if (scenario.fabric.topology == "file") {
    topology_known = load_topology(scenario, out.value, out.errors);
  } else {
    out.value.numbers = NodeNumbers::star(scenario.fabric.hosts);
    const config::FabricConfig& fabric = scenario.fabric;
    out.value.host_rates.assign(fabric.hosts, Rate{fabric.rate.bps * fabric.ports});
  }
  if (scenario.fabric.topology == "file" && topology_known) {
    find_named_links(scenario, out.value.numbers, out.errors);
  }
  const config::WorkloadConfig& w = scenario.workload;
  if (w.placement == "file" && topology_known) {
    auto placement = read_placement_file(w.placement_file, config::server_shape(scenario.fabric));
    out.value.placement = std::move(placement.value);
    append(out.errors, std::move(placement.errors));
  }
  if (w.kind == "flows" && topology_known) {
    auto flows = read_hpcc_flows(w.flows_file, out.value.numbers);
    out.value.flows = std::move(flows.value);
    append(out.errors, std::move(flows.errors));
  } else if (w.kind == "htsim" && topology_known) {
    auto matrix = read_htsim_plan(w.matrix_file, w.start_unit, scenario.fabric.hosts);
    out.value.matrix = std::move(matrix.value);
    append(out.errors, std::move(matrix.errors));
  } else if (w.kind == "job" && topology_known && !config::storage_error(scenario).empty()) {
    out.errors.push_back(config::storage_error(scenario));
  } else if (w.kind == "job" && topology_known) {
    auto job = load_job(w.job, config::job_ranks(scenario));
    out.value.job = std::move(job.value);
    out.value.warnings = std::move(job.warnings);
    append(out.errors, std::move(job.errors));
    if (!w.job.schedule_file.empty()) {
      auto custom = read_msccl_file(w.job.schedule_file);
      append(out.errors, std::move(custom.errors));
      out.value.schedule = std::move(custom.value.schedule);
    }
  } else if (w.kind == "open_loop") {
    if (w.cdf == "file") {
      auto cdf = read_cdf_file(w.cdf_file);
      out.value.sizes = std::move(cdf.value);
      append(out.errors, std::move(cdf.errors));
    } else {
      out.value.sizes = w.cdf == "fb_hadoop" ? fb_hadoop_cdf() : web_search_cdf();
    }
  }
  return out;
}

config::Read<JobPlan> make_job_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                                    std::uint64_t seed) {
  const config::ServerShape shape = config::server_shape(scenario.fabric);
  const Placement nics = placement_of(scenario, inputs, seed);
  std::vector<std::uint32_t> servers;
  for (const std::uint32_t nic : nics) servers.push_back(shape.server_of(nic));
  const Job job = as_run(inputs.job, scenario.workload.job, seed);
  const config::BackgroundConfig& background = scenario.workload.background;
  const std::uint32_t ranks = config::job_ranks(scenario);
  const std::uint64_t beside = background_messages(background, ranks);
  CollectiveSettings settings = collective_settings(scenario.workload.job, seed);
  if (inputs.schedule) settings.custom = &*inputs.schedule;
  if (beside > kMostMessages) {
    const std::string many = fmt::format(kTooMany, static_cast<double>(beside), kMostMessages);
    return {
        {},
        {fmt::format("scenario \"{}\": workload.background: {}; larger message_bytes make fewer",
                     scenario.name, many)}};
  }
  auto out = plan_job(job, servers, settings, kMostMessages - beside);
  for (std::string& error : out.errors) {
    error = fmt::format("scenario \"{}\": {}", scenario.name, error);
  }
  if (!out.ok()) return out;
  add_background(background, ranks, out.value.plan);
  put_on_nics(out.value.plan, nics);
  for (const config::FaultConfig& fault : scenario.faults) {
    if (fault.kind != "slow_rank") continue;
    if (fault.rank >= ranks) {
      out.errors.push_back(
          fmt::format("{}: fault.target = \"{}\": no such rank", fault.where, fault.target));
      return out;
    }
    out.value.plan.slow_computing.push_back(
        {nics[fault.rank], fault.at, fault.until(), fault.severity});
  }
  return out;
}

config::Read<MessagePlan> make_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                                    std::uint64_t seed) {
  const config::WorkloadConfig& w = scenario.workload;
  const config::ServerShape shape = config::server_shape(scenario.fabric);
  if (w.kind == "job") {
    auto job = make_job_plan(scenario, inputs, seed);
    return {std::move(job.value.plan), std::move(job.errors)};
  }
  Plan out = w.per_rail ? rails_plan(scenario, inputs, seed) : placed_plan(scenario, inputs, seed);
  if (!out.ok()) return out;
  if (w.pxn) relay_along_rails(out.value, shape);
  if (out.value.messages.size() > kMostMessages) {
    out.errors.push_back(fmt::format(
        "scenario \"{}\": {}", scenario.name,
        fmt::format(kTooMany, static_cast<double>(out.value.messages.size()), kMostMessages)));
    return out;
  }
  if (shape.nics > 1 && !w.per_rail) count_senders_of_nics(out.value, shape, w.pxn);
  sort_plan(out.value);
  return out;
}

}  // namespace paceline::workload
