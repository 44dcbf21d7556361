#include "dataplane/telemetry/series.h"

#include <algorithm>

namespace paceline::telemetry {

namespace {

using enum SeriesKind;

constexpr std::array<Series, kNicSeries> kSeries{{
    {"rx_packets", "packets", counter, "packets that arrived, of any kind"},
    {"rx_wire_bytes", "bytes", counter, "bytes of all packets that arrived, as on the wire"},
    {"acks_received", "packets", counter, "ACK and NAK packets received"},
    {"tx_data_packets", "packets", counter, "data sent, first transmissions"},
    {"tx_data_bytes", "bytes", counter, "payload of data sent, first transmissions"},
    {"tx_wire_bytes", "bytes", counter, "data packets, retransmissions included, as on the wire"},
    {"tx_control_packets", "packets", counter,
     "ACK, NAK, XACK, CNP, HELLO, REQUEST and GRANT sent"},
    {"rx_data_packets", "packets", counter, "data accepted in sequence"},
    {"rx_data_bytes", "bytes", counter, "payload of data accepted in sequence"},
    {"rx_ce_packets", "packets", counter, "data that arrived marked congestion-experienced"},
    {"acks_sent", "packets", counter, "acknowledgements sent"},
    {"retransmitted_packets", "packets", counter, "transmissions beyond the first"},
    {"retransmitted_bytes", "bytes", counter, "payload of transmissions beyond the first"},
    {"acks_coalesced", "packets", counter, "ACKs that a later one of the same poll replaced"},
    {"stale_acks", "packets", counter, "ACK or NAK outside the window of unacknowledged PSNs"},
    {"naks_sent", "packets", counter, "NAKs sent for a gap in the PSNs"},
    {"naks_received", "packets", counter, "NAKs received for a gap in the PSNs"},
    {"error_naks_sent", "packets", counter,
     "NAKs sent: invalid request, remote access, remote operational"},
    {"error_naks_received", "packets", counter,
     "NAKs received: invalid request, remote access, remote operational"},
    {"implied_naks", "1", counter, "READ responses found missing by later responses"},
    {"rnr_sent", "packets", counter, "NAKs sent: receiver not ready"},
    {"rnr_received", "packets", counter, "NAKs received: receiver not ready"},
    {"timeouts", "1", counter, "a retransmission timer expired"},
    {"duplicates", "packets", counter, "requests seen before"},
    {"out_of_sequence", "packets", counter, "requests ahead of the expected PSN"},
    {"placed_early", "packets", counter,
     "requests ahead of the expected PSN: WRITEs placed at once"},
    {"held_early", "packets", counter, "requests ahead of the expected PSN: held until their turn"},
    {"beyond_window", "packets", counter,
     "requests dropped: too far ahead, or no room to hold them"},
    {"lost_packets", "packets", counter, "selective repeat: found missing, sent again"},
    {"tail_probes", "packets", counter,
     "selective repeat: sent again to probe for the missing acknowledgement"},
    {"rx_trimmed", "packets", counter, "data that arrived without its payload"},
    {"trim_losses", "packets", counter, "lost packets that the peer received trimmed"},
    {"ghost_requests", "packets", counter, "repeated READs and atomics without a kept response"},
    {"completions", "messages", counter, "work requests completed"},
    {"completion_errors", "messages", counter, "work requests completed with an error"},
    {"cq_overflows", "messages", counter, "completions that found the queue full"},
    {"cnps_sent", "packets", counter, "congestion notification packets sent"},
    {"cnps_received", "packets", counter, "congestion notification packets received"},
    {"notices_received", "packets", counter, "notices of switches received"},
    {"hellos_sent", "packets", counter, "HELLO messages sent, answers included"},
    {"hellos_received", "packets", counter, "HELLO messages received"},
    {"requests_sent", "packets", counter, "REQUEST messages sent"},
    {"requests_received", "packets", counter, "REQUEST messages received"},
    {"grants_sent", "packets", counter, "GRANT messages sent"},
    {"grants_received", "packets", counter, "GRANT messages received"},
    {"control_bytes", "bytes", counter, "HELLO, REQUEST and GRANT sent, as on the wire"},
    {"control_ignored", "packets", counter,
     "control messages ignored: unknown peer or channel, or control switched off"},
    {"fallbacks", "1", counter, "times a context switched to its fallback algorithm"},
    {"plugin_clamped", "1", counter, "decisions of a plug-in clamped to the allowed range"},
    {"plugin_nonsense", "1", counter, "decisions of a plug-in that are not meaningful"},
    {"plugin_slow", "1", counter, "timed calls of a plug-in that exceeded the budget"},
    {"plugin_quarantines", "1", counter, "plug-ins quarantined: not called any more"},
    {"plugin_receiver_quarantines", "1", counter,
     "plug-ins quarantined because of their receiving half"},
    {"no_queue_pair", "packets", counter, "packets for a queue pair that does not exist"},
    {"wrong_state", "packets", counter, "packets for a queue pair in a state that accepts none"},
    {"qkey_violations", "packets", counter, "UD: datagrams with a wrong Q_Key"},
    {"unsupported_operations", "packets", counter,
     "packets with an operation that the engine does not support"},
    {"dropped_no_receive", "packets", counter,
     "UC and UD: packets dropped, no receive request or no room"},
    {"dropped_too_long", "packets", counter,
     "UC and UD: packets dropped, longer than the receive request or the WRITE's length"},
    {"dropped_no_access", "packets", counter,
     "UC: packets dropped, no right to the memory they name"},
    {"dropped_bad_request", "packets", counter,
     "UC: packets dropped, length invalid for their opcode"},
    {"dropped_local_error", "packets", counter,
     "UC and UD: packets dropped, the memory of the receive request failed"},
    {"dropped_gap", "packets", counter,
     "packets dropped, after a missing packet, or too far ahead"},
    {"dropped_stale", "packets", counter,
     "packets dropped, seen before, or responses to no request"},
    {"dropped_refused", "packets", counter, "RC: packets dropped, answered by an error NAK"},
    {"dropped_bad_response", "packets", counter,
     "packets dropped, responses that put the queue pair in error"},
    {"atomic_answers", "packets", counter,
     "acknowledgements that answer atomic operations, part of acks_received"},
    {"becns_received", "packets", counter,
     "congestion notifications within acknowledgements, part of cnps_received"},
    {"unreliable_drops", "messages", counter, "UC and UD: not taken (gap, no receive, no right)"},
    {"digest_mismatches", "packets", counter, "elided payloads that arrived at a wrong address"},
    {"memory_waits", "1", counter, "times an access to a memory region had to wait"},
    {"tx_lent_bytes", "bytes", counter, "payload sent without a copy"},
    {"no_packet", "1", counter, "times that the packet pool was empty"},
    {"tx_stalled", "packets", counter, "packets refused by the port although it was ready"},
    {"malformed", "packets", counter, "packets dropped by the parser, for any reason"},
    {"limited_application_ns", "ns", counter, "time with nothing to send"},
    {"limited_grant_ns", "ns", counter, "time held by the receiver's grant"},
    {"limited_uplink_ns", "ns", counter, "time held by the share of the own uplink"},
    {"limited_path_ns", "ns", counter, "time held by congestion on the path (a reactive rate)"},
    {"limited_window_ns", "ns", counter, "time held by the window: bytes in flight"},
    {"limited_credit_ns", "ns", counter,
     "time held by the cumulative ceiling or transport credits"},
    {"limited_port_ns", "ns", counter, "time held by the port: line rate, pause"},
    {"inflight_bytes", "bytes", gauge, "bytes sent and not acknowledged, as on the wire"},
    {"backlog_bytes", "bytes", gauge, "payload posted and not sent"},
    {"queue_pairs", "1", gauge, "queue pairs of programs"},
    {"contexts", "1", gauge, "contexts in use"},
    {"contexts_on_fallback", "1", gauge, "contexts on their fallback algorithm"},
    {"sessions", "1", gauge, "programs that have opened this NIC"},
    {"last_hop_queue_bytes", "bytes", gauge, "emulated: queue of the switch port towards this NIC"},
    {"last_hop_queue_max_bytes", "bytes", gauge,
     "emulated: deepest queue of the switch port towards this NIC"},
    {"last_hop_marked", "packets", counter,
     "emulated: packets marked at the switch port towards this NIC"},
    {"last_hop_drops", "packets", counter,
     "emulated: packets dropped at the switch port towards this NIC"},
    {"paused_ns", "ns", counter, "emulated: time this NIC's link towards the switch was paused"},
    {"stalled_ns", "ns", counter,
     "time with messages outstanding and nothing sent, received or acknowledged"},
    {"host_stops", "1", counter, "times the host was stopped or suspended"},
    {"host_stopped_ns", "ns", counter, "time for which the host was stopped or suspended"},
    {"hiccups", "1", counter, "worker: unplanned gaps between turns"},
    {"hiccup_ns", "ns", counter, "worker: time of unplanned gaps between turns"},
    {"stalls", "1", counter, "worker: gaps between turns of more than 1 ms"},
    {"worker_turns", "1", counter, "worker: turns of its loop"},
    {"worker_busy_turns", "1", counter, "worker: turns of its loop with work"},
    {"worker_sleeps", "1", counter, "worker: times it slept"},
    {"worker_busy_cycles", "cycles", counter, "worker: ticks of its clock in busy turns"},
    {"worker_packets", "packets", counter, "worker: packets sent and received, by all its NICs"},
    {"port_loans_sent", "packets", counter, "port: packets sent with a lent payload"},
    {"port_loans_copied", "packets", counter,
     "port: packets copied, because too many payloads were lent"},
    {"port_loans_recalled", "packets", counter,
     "port: lent payloads copied before delivery, their memory being reclaimed"},
    {"port_loans_overdue", "packets", counter,
     "port: lent payloads still in use 0.1 s after the reclaim of their memory"},
    {"port_loans_received", "packets", counter,
     "port: packets received and read from the sender's memory"},
    {"probes_sent", "packets", counter, "probes sent"},
    {"probes_answered", "packets", counter, "probes answered"},
    {"probes_lost", "packets", counter, "probes unanswered for 1 s"},
    {"one_way_there_ns", "ns", gauge, "one-way delay to the peer that answered last"},
    {"one_way_back_ns", "ns", gauge, "one-way delay from that peer"},
}};

// The engine's counters under the engine's names, none left out.
constexpr bool begins_with_counters() {
  for (std::size_t i = 0; i < kEngineSeries; ++i) {
    if (kSeries[i].name != detail::kCounters[i].name) return false;
  }
  return true;
}
static_assert(begins_with_counters());

constexpr bool fits_in_text() {
  return std::all_of(kSeries.begin(), kSeries.end(), [](const Series& s) {
    return !s.name.empty() && s.name.size() < SeriesText{}.name.size() &&
           s.unit.size() < SeriesText{}.unit.size() && !s.meaning.empty();
  });
}
static_assert(fits_in_text());
static_assert(kSeries[series_index(NicSeries::malformed)].name == "malformed");
static_assert(kSeries[series_index(NicSeries::limited_port_ns)].name == "limited_port_ns");
static_assert(kSeries[series_index(NicSeries::paused_ns)].name == "paused_ns");
static_assert(kSeries[series_index(NicSeries::worker_packets)].name == "worker_packets");
static_assert(kSeries[series_index(NicSeries::port_loans_received)].name == "port_loans_received");
static_assert(kSeries[series_index(NicSeries::one_way_back_ns)].name == "one_way_back_ns");

}  // namespace

std::span<const Series, kNicSeries> nic_series() { return kSeries; }

void put_counters(const EngineCounters& counters, NicValues& values) {
  std::size_t i = 0;
  for_each(counters, [&](std::string_view, std::uint64_t value) { values[i++] = value; });
  values[series_index(NicSeries::malformed)] = malformed_total(counters);
}

std::string series_markdown() {
  std::string text;
  for (const Series& s : kSeries) {
    text.append("- `").append(s.name).append("` (").append(s.unit);
    text.append(s.kind == counter ? "): " : ", gauge): ").append(s.meaning).append("\n");
  }
  return text;
}

}  // namespace paceline::telemetry
