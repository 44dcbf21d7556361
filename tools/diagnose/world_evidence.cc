#include "tools/diagnose/world_evidence.h"

#include <algorithm>

#include "tools/diagnose/evidence_recorder.h"
#include "tools/diagnose/fabric_evidence.h"
#include "tools/diagnose/rank_evidence.h"
#include "tools/run/nic_pace.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;

// Changes of links, as drivers of NICs report them.
void read_ports(const VirtualWorld& world, Evidence& out) {
  const fabric::FabricSpec& spec = world.network().spec();
  std::vector<fabric::LinkEvent> events;
  for (fabric::LinkEvent event : spec.events) {
    if (event.action != fabric::LinkAction::down && event.action != fabric::LinkAction::up)
      continue;
    events.push_back(event);
    if (event.every.count == 0) continue;
    const Picos end = earlier(event.until, world.now() + Picos{1});
    while ((event.at = event.at + event.every) < end) events.push_back(event);
  }
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

}  // namespace

ObservedRun observe_scenario(const PreparedScenario& prepared, std::uint64_t seed,
                             RunControl control) {
  ObservedRun out;
  Evidence& evidence = out.evidence;
  EvidenceRecorder recorder;
  control.sample_interval = EvidenceRecorder::kGlance;
  control.sample = [&](VirtualWorld& world, Picos at) { recorder.look(world, at); };
  control.finished = [&](VirtualWorld& world) {
    evidence.until = world.now();
    describe_fabric(prepared.scenario, prepared.inputs.numbers, world.network().spec(), evidence);
    recorder.finish(world, evidence);
    read_ports(world, evidence);
    read_paces(world, evidence);
    read_queues(world, out);
  };
  out.run = run_scenario(prepared, prepared.scenario.cc, seed, control);
  if (out.run.job) {
    read_ranks(prepared.inputs.job, out.run.job_plan, *out.run.job,
               workload::placement_of(prepared.scenario, prepared.inputs, seed), evidence);
  }
  return out;
}

}  // namespace paceline::tools
