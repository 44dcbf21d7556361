#include "tools/diagnose/world_evidence.h"

#include <algorithm>

#include "control/diagnosis/robust.h"
#include "tools/diagnose/evidence_recorder.h"
#include "tools/run/link_names.h"
#include "tools/run/nic_pace.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;
using workload::JobOpKind;

double micros(Picos t) { return static_cast<double>(t.count) / 1e6; }

void describe_fabric(const PreparedScenario& prepared, const VirtualWorld& world, Evidence& out) {
  const config::Scenario& scenario = prepared.scenario;
  const fabric::FabricSpec& spec = world.network().spec();
  const std::vector<NamedLink> names = link_names(scenario, prepared.inputs.numbers);
  std::vector<double> from_hosts(spec.switches), to_switches(spec.switches);
  out.nics.resize(world.hosts());
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const fabric::LinkSpec& link = spec.links[i];
    const bool of_host = std::min(link.a, link.b) < spec.hosts;
    const auto rate = static_cast<double>(link.rate.bps);
    out.links.push_back({names[i].name, names[i].first, names[i].second, rate, of_host});
    if (of_host) {
      const std::uint32_t end = std::min(link.a, link.b);
      const std::uint32_t leaf = std::max(link.a, link.b);
      diagnosis::NicEvidence& nic = out.nics[end % spec.nics()];
      if (end < spec.nics()) nic.name = link.a == end ? names[i].first : names[i].second;
      nic.rate_bps += rate;
      if (leaf >= spec.hosts) from_hosts[leaf - spec.hosts] += rate;
    } else {
      to_switches[link.a - spec.hosts] += rate;
      to_switches[link.b - spec.hosts] += rate;
    }
  }
  for (std::uint32_t s = 0; s < spec.switches; ++s) {
    if (from_hosts[s] == 0 || to_switches[s] == 0) continue;
    out.oversubscription = std::max(out.oversubscription, from_hosts[s] / to_switches[s]);
  }
  out.packet_bytes = scenario.transport.payload_bytes;
  out.marks = scenario.fabric.ecn.enabled;
}

// Changes of links, as drivers of NICs report them.
void read_ports(const VirtualWorld& world, Evidence& out) {
  const fabric::FabricSpec& spec = world.network().spec();
  std::vector<fabric::LinkEvent> events = spec.events;
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  for (std::uint32_t link = 0; link < spec.links.size(); ++link) {
    const std::uint32_t end = std::min(spec.links[link].a, spec.links[link].b);
    if (end >= spec.hosts) continue;
    diagnosis::PortEvidence port;
    port.name = out.links[link].name;
    port.nic = end % spec.nics();
    bool up = true;
    for (const fabric::LinkEvent& event : events) {
      if (event.link != link || event.at > world.now()) continue;
      const bool down = event.action == fabric::LinkAction::down;
      if (!down && event.action != fabric::LinkAction::up) continue;
      if (up == !down) continue;
      up = !down;
      port.changes.push_back({event.at, up});
    }
    if (!port.changes.empty()) out.ports.push_back(std::move(port));
  }
}

void read_paces(const VirtualWorld& world, Evidence& out) {
  const NicPaces paces(world);
  const auto border = [&](std::uint32_t slice) {
    if (slice == 0) return Picos{-1};
    return slice == Evidence::kSlices ? kNever : world.now() / Evidence::kSlices * slice;
  };
  for (std::uint32_t first = 0; first < Evidence::kSlices; ++first) {
    for (std::uint32_t last = first + 1; last < Evidence::kSlices; ++last) {
      out.parts.push_back({first, last});
      const std::vector<NicPace> now =
          paces.between(border(first), border(last + 1), PaceWeight::bytes);
      for (std::size_t nic = 0; nic < now.size(); ++nic) out.nics[nic].paces.push_back(now[nic]);
    }
  }
  out.slowness = paces.by_pair();
}

void read_queues(const VirtualWorld& world, ObservedRun& out) {
  for (std::uint32_t link = 0; link < world.network().links(); ++link) {
    const auto stats = world.network().egress_stats(link);
    if (!stats) continue;
    const diagnosis::LinkEvidence& of = out.evidence.links[link / 2];
    SwitchQueues& queues = out.queues[link % 2 == 0 ? of.first : of.second];
    queues.deepest_bytes = std::max(queues.deepest_bytes, stats->max_bytes);
    queues.marked += stats->marked;
  }
}

// What each rank did before each of its collectives.
class RankReader {
 public:
  RankReader(const workload::Job& job, const workload::JobPlan& plan, const JobReport& report)
      : job_(job), plan_(plan), report_(report) {}

  void read(Evidence& out, const workload::Placement& nics) const {
    out.ranks.resize(job_.ranks);
    for (std::uint32_t r = 0; r < job_.ranks; ++r) out.ranks[r].nic = nics[r];
    std::vector<double> usual_entry;
    std::vector<std::vector<std::pair<Picos, std::uint32_t>>> entries(job_.ranks);  // time, call
    for (std::uint32_t c = 0; c < plan_.calls.size(); ++c) {
      std::vector<double> times;
      for (const std::uint32_t op : plan_.calls[c].ops) {
        const Picos begin = report_.ops[op].begin;
        if (begin.count < 0) continue;
        times.push_back(micros(begin));
        entries[job_.ops[op].rank].emplace_back(begin, c);
      }
      usual_entry.push_back(diagnosis::median(times));
    }
    for (std::uint32_t r = 0; r < job_.ranks; ++r) {
      std::sort(entries[r].begin(), entries[r].end());
      read_rank(r, entries[r], usual_entry, out.ranks[r]);
    }
  }

 private:
  void read_rank(std::uint32_t rank, const std::vector<std::pair<Picos, std::uint32_t>>& entries,
                 const std::vector<double>& usual_entry, diagnosis::RankEvidence& out) const {
    std::vector<std::pair<Picos, Picos>> computing;  // end, how long
    for (std::uint32_t op = 0; op < job_.ops.size(); ++op) {
      const OpTime& time = report_.ops[op];
      if (job_.ops[op].rank != rank || job_.ops[op].kind != JobOpKind::compute) continue;
      if (time.begin.count >= 0 && time.end.count >= 0) {
        computing.emplace_back(time.end, time.end - time.begin);
      }
    }
    std::sort(computing.begin(), computing.end());
    std::size_t next = 0;
    for (const auto& [at, call] : entries) {
      Picos sum{0};
      for (; next < computing.size() && computing[next].first <= at; ++next) {
        sum = sum + computing[next].second;
      }
      out.steps.push_back({call, micros(sum), micros(at) - usual_entry[call]});
    }
  }

  const workload::Job& job_;
  const workload::JobPlan& plan_;
  const JobReport& report_;
};

}  // namespace

ObservedRun observe_scenario(const PreparedScenario& prepared, std::uint64_t seed,
                             RunControl control) {
  ObservedRun out;
  Evidence& evidence = out.evidence;
  EvidenceRecorder recorder;
  control.sample_interval = EvidenceRecorder::kFirstDistance;
  control.sample = [&](VirtualWorld& world, Picos at) { recorder.look(world, at); };
  control.finished = [&](VirtualWorld& world) {
    evidence.until = world.now();
    describe_fabric(prepared, world, evidence);
    recorder.finish(world, evidence);
    read_ports(world, evidence);
    read_paces(world, evidence);
    read_queues(world, out);
  };
  out.run = run_scenario(prepared, prepared.scenario.cc, seed, control);
  if (out.run.job) {
    RankReader(prepared.inputs.job, out.run.job_plan, *out.run.job)
        .read(evidence, workload::placement_of(prepared.scenario, prepared.inputs, seed));
  }
  return out;
}

}  // namespace paceline::tools
