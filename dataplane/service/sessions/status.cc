#include "dataplane/service/sessions/status.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cc/registry.h"
#include "dataplane/attach/text.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/service/sessions/session.h"

namespace paceline::service {

namespace {

using Json = nlohmann::ordered_json;

double micros(Picos time) { return static_cast<double>(time.count) * 1e-6; }

Json allowance(const Allowance& a) { return {{"used", a.used}, {"most", a.most}}; }

Json counters_of(const telemetry::EngineCounters& c) {
  return {
      {"tx_data_packets", c.tx_data_packets},
      {"tx_data_bytes", c.tx_data_bytes},
      {"tx_control_packets", c.tx_control_packets},
      {"rx_packets", c.rx_packets},
      {"rx_data_packets", c.rx_data_packets},
      {"rx_data_bytes", c.rx_data_bytes},
      {"rx_ce_packets", c.rx_ce_packets},
      {"retransmitted_packets", c.retransmitted_packets},
      {"timeouts", c.timeouts},
      {"naks_sent", c.naks_sent},
      {"rnr_sent", c.rnr_sent},
      {"out_of_sequence", c.out_of_sequence},
      {"duplicates", c.duplicates},
      {"cnps_sent", c.cnps_sent},
      {"cnps_received", c.cnps_received},
      {"grants_sent", c.grants_sent},
      {"grants_received", c.grants_received},
      {"completions", c.completions},
      {"completion_errors", c.completion_errors},
      {"cq_overflows", c.cq_overflows},
      {"no_queue_pair", c.no_queue_pair},
  };
}

// Packets that arrived and were not delivered, by reason.
Json undelivered_of(const telemetry::EngineCounters& c) {
  Json out = Json::object();
  telemetry::for_each_undelivered(c, [&](std::string_view reason, std::uint64_t packets) {
    out[std::string(reason)] = packets;
  });
  return out;
}

Json depth_of(const DepthReport& d) {
  return {
      {"packets", d.packets}, {"mean", d.mean}, {"p50", d.p50}, {"p99", d.p99}, {"most", d.most}};
}

Json fabric_of(const FabricReport& f) {
  Json drops = Json::object();
  for (const auto& drop : f.drops) drops[std::string(drop.reason)] = drop.packets;
  Json queues = Json::array();
  for (const QueueReport& q : f.queues) {
    queues.push_back({{"from", q.from},
                      {"to", q.to},
                      {"queued_bytes", q.queued_bytes},
                      {"most_bytes", q.most_bytes},
                      {"mean_bytes", q.mean_bytes},
                      {"packets", q.packets},
                      {"bytes", q.bytes},
                      {"marked", q.marked},
                      {"drops", q.drops},
                      {"paused_us", micros(q.paused)}});
  }
  return {{"injected_packets", f.injected_packets},
          {"delivered_packets", f.delivered_packets},
          {"marked_packets", f.marked_packets},
          {"trimmed_packets", f.trimmed_packets},
          {"corrupted_packets", f.corrupted_packets},
          {"duplicated_packets", f.duplicated_packets},
          {"reordered_packets", f.reordered_packets},
          {"link_failures", f.link_failures},
          {"pause_frames", f.pause_frames},
          {"pause_us", micros(f.pause_time)},
          {"buffer_most", f.buffer_most},
          {"drops", std::move(drops)},
          {"last_hop", depth_of(f.last_hop)},
          {"core", depth_of(f.core)},
          {"queues", std::move(queues)}};
}

Json port_of(const PortReport& p) {
  Json pause_frames;  // null: not counted
  if (p.counts_pause) {
    pause_frames = {{"sent", p.pause_sent},
                    {"received", p.pause_received},
                    {"priority_sent", p.priority_pause_sent},
                    {"priority_received", p.priority_pause_received}};
  }
  return {{"rx_missed", p.rx_missed},
          {"rx_no_buffer", p.rx_no_buffer},
          {"rx_errors", p.rx_errors},
          {"tx_errors", p.tx_errors},
          {"pause", p.pause.empty() ? Json() : Json(p.pause)},
          {"pause_frames", std::move(pause_frames)}};
}

Json loans_of(const LoanReport& l) {
  return {{"sent", l.sent},
          {"copied", l.copied},
          {"recalled", l.recalled},
          {"overdue", l.overdue},
          {"received", l.received}};
}

Json capture_of(const CaptureReport& c) {
  return {
      {"frames", c.frames}, {"missed", c.missed}, {"ring_bytes", c.ring_bytes}, {"snap", c.snap}};
}

Json arrivals_of(const ArrivalReport& a) {
  if (!a.stamped) return {{"clock", "poll"}};
  return {{"clock", "device"},
          {"clock_ready", a.clock_ready},
          {"clock_hz", a.clock_hz},
          {"clock_jumps", a.clock_jumps},
          {"stamps", a.stamps},
          {"unstamped", a.unstamped},
          {"refused", a.refused},
          {"not_ready", a.not_ready},
          {"round_trips", a.round_trips},
          {"round_trips_refused", a.round_trips_refused}};
}

Json addresses_of(const attach::NicInfo& info) {
  Json out = Json::array();
  attach::each_gid(info, [&](auto, auto, const auto& gid) {
    out.push_back(wire::to_text(wire::IpAddress{gid}));
  });
  return out;
}

Json worker_of(Service& service, std::size_t index) {
  ServiceWorker& worker = service.worker(index);
  NicSetReport report = worker.nics().blank_report();
  worker.nics().ask_devices(report);
  // The congestion control of each NIC now; it may have changed since the start.
  std::vector<std::string_view> algorithms(worker.nics().size(), report.algorithm);
  worker.call(0, [&](Picos now) {
    worker.nics().describe(now, report);
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      algorithms[i] = cc::find(worker.nics().nic(i).engine->view().setup().primary.algorithm)->name;
    }
  });
  const bool same = std::all_of(algorithms.begin(), algorithms.end(),
                                [&](std::string_view name) { return name == algorithms.front(); });
  const WorkerFigures f = worker.figures();
  Json nics = Json::array();
  for (std::size_t i = 0; i < worker.nics().size(); ++i) {
    const attach::NicInfo& info = worker.nics().nic(i).info;
    Json nic = {{"name", attach::text_of(info.name)},
                {"addresses", addresses_of(info)},
                {"local_id", info.local_id},
                {"rate_mbps", info.rate_mbps},
                {"mtu", info.mtu},
                {"up", worker.ports_up(i) != 0},
                {"gone", service.gone({index, i})},
                {"algorithm", algorithms[i]}};
    if (i < report.nics.size()) {
      const NicReport& told = report.nics[i];
      if (told.links_up.size() > 1) nic["ports_up"] = told.links_up;
      if (report.fabric.emulated) {
        nic["pausing_us"] = micros(told.pausing);
        nic["reclassed_packets"] = told.reclassed_packets;
        nic["sent_wire_bytes"] = told.sent_wire_bytes;
        nic["sending_us"] = micros(told.sending);
      }
      nic["counters"] = counters_of(told.counters);
      nic["undelivered"] = undelivered_of(told.counters);
      if (told.capture.running) nic["capture"] = capture_of(told.capture);
      if (told.port.known) {
        nic["port"] = port_of(told.port);
        nic["port"]["arrivals"] = arrivals_of(told.arrivals);
        nic["port"]["loans"] = loans_of(told.loans);
      }
    }
    nics.push_back(std::move(nic));
  }
  Json out = {{"name", worker.name()},
              {"turns", f.turns},
              {"busy_turns", f.busy_turns},
              {"sleeps", f.sleeps},
              {"hiccups", f.watch.hiccups},
              {"hiccup_us", micros(f.watch.hiccup_time)},
              {"stalls", f.watch.stalls},
              {"longest_us", micros(f.watch.longest)},
              {"algorithm", same ? algorithms.front() : "mixed"},
              {"at_us", micros(report.at)},
              {"nics", std::move(nics)}};
  if (report.fabric.emulated) out["fabric"] = fabric_of(report.fabric);
  return out;
}

Json session_of(Service& service, const Session& session) {
  const TenantMemoryCounters memory = session.memory();
  Json out = {{"number", session.number()},
              {"pid", session.peer().pid},
              {"user", session.peer().user},
              {"program", session.program()}};
  if (const auto place = session.place()) {
    out["nic"] = attach::text_of(service.worker(place->worker).nics().nic(place->nic).info.name);
  }
  if (session.manages_connections()) {
    const cm::CmCounts cm = session.cm_counts();
    out["cm"] = {{"channels", cm.channels}, {"ids", cm.ids}, {"listeners", cm.listeners}};
  }
  out["queue_pairs"] = session.queue_pairs();
  out["completion_queues"] = session.completion_queues();
  out["regions"] = session.regions();
  out["messages"] = session.messages();
  out["memory"] = {{"shared_bytes", memory.shared_bytes},
                   {"by_copy_bytes", memory.by_copy_bytes},
                   {"copies", memory.copies},
                   {"copied_bytes", memory.copied_bytes},
                   {"faults", memory.faults},
                   {"refused", memory.refused}};
  return out;
}

Json privileges_of(const Privileges& p) {
  Json kept = Json::array();
  for (const KeptCapability& one : p.kept) {
    kept.push_back({{"name", one.name}, {"in_force", one.in_force}, {"why", one.why}});
  }
  return {{"user", p.user}, {"capabilities", std::move(kept)}};
}

Json tenant_of(const Tenant& t) {
  Json refused = Json::object();
  for (const auto& [error, count] : t.refused) refused[::strerrorname_np(error)] = count;
  return {{"user", t.user},
          {"sessions", allowance(t.sessions)},
          {"queue_pairs", allowance(t.queue_pairs)},
          {"completion_queues", allowance(t.completion_queues)},
          {"shared_receive_queues", allowance(t.shared_receive_queues)},
          {"regions", allowance(t.regions)},
          {"protection_domains", allowance(t.protection_domains)},
          {"address_handles", allowance(t.address_handles)},
          {"registered_bytes", allowance(t.registered_bytes)},
          {"queue_bytes", allowance(t.queue_bytes)},
          {"descriptors", allowance(t.descriptors)},
          {"mappings", allowance(t.mappings)},
          {"refused", std::move(refused)}};
}

// In the words of the request, times in microseconds from now.
Json fault_of(const FaultBook::Entry& entry, Picos now) {
  const config::LinkFault& fault = entry.fault;
  Json out = {{"target", fault.target}, {"action", fault.action}};
  if (fault.action == "rate") {
    out["rate_mbps"] = static_cast<double>(fault.rate.bps) * 1e-6;
  } else if (fault.action == "delay") {
    out["delay_ns"] = static_cast<double>(fault.delay.count) * 1e-3;
  } else if (const config::FaultKindInfo* const kind = config::find_fault_kind(fault.action)) {
    if (kind->most != 0) out["severity"] = fault.severity.value_or(kind->usual);
    if (fault.seed != 0) out["seed"] = fault.seed;
  } else if (fault.action != "down") {
    out["probability"] = fault.probability;
  }
  if (fault.direction != "both") out["direction"] = fault.direction;
  out["in_force"] = entry.from <= now;
  out["begins_us"] = micros(entry.from - now);
  out["ends_us"] = entry.until == kNever ? Json() : Json(micros(entry.until - now));
  return out;
}

Json faults_of(FaultBook& book) {
  Json out = Json::array();
  const Picos now = FaultBook::steady_now();
  for (const FaultBook::Entry& entry : book.not_over(now)) out.push_back(fault_of(entry, now));
  return out;
}

Json management_of(const ManagementCounts& m) {
  return {{"sent", m.sent},         {"repeated", m.repeated}, {"rejected", m.rejected},
          {"received", m.received}, {"refused", m.refused},   {"unknown", m.unknown},
          {"lost", m.lost}};
}

}  // namespace

std::string status_text(Service& service, const std::vector<const Session*>& sessions,
                        std::optional<uid_t> only, const ManagementCounts& management) {
  Json workers = Json::array();
  for (std::size_t i = 0; i < service.workers(); ++i) {
    workers.push_back(worker_of(service, i));
  }
  Json tenants = Json::array();
  for (const auto& [user, tenant] : service.tenants()) {
    if (!only || *only == user) tenants.push_back(tenant_of(tenant));
  }
  Json list = Json::array();
  for (const Session* session : sessions) {
    if ((!session->place() && !session->manages_connections()) ||
        (only && *only != session->peer().user))
      continue;
    list.push_back(session_of(service, *session));
  }
  // Only those who manage the service see paths of files.
  const Json testbed =
      only ? Json()
           : Json{{"file", service.settings().testbed}, {"set", service.settings().overrides}};
  const Json all = {{"schema", 1},
                    {"version", PACELINE_VERSION},
                    {"pid", ::getpid()},
                    {"testbed", testbed},
                    {"privileges", privileges_of(service.privileges())},
                    {"workers", std::move(workers)},
                    {"faults", faults_of(service.faults())},
                    {"management", management_of(management)},
                    {"tenants", std::move(tenants)},
                    {"sessions", std::move(list)}};
  // A program's name need not be text.
  return all.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace paceline::service
