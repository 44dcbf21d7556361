// The control protocol: how the daemon (or an operator's tool) talks to the service. It has a Unix
// socket of type SEQPACKET of its own beside that of programs, only for the service's user and root
// (or a group that the testbed file names): a client that can connect can change congestion
// control.
//
// A message is one JSON object of at most kMostControlBytes. A request is
//   {"schema": 1, "id": N, "op": "...", ...}
// and is answered in order, by {"schema": 1, "id": N, "ok": true, ...} or by
//   {"schema": 1, "id": N, "ok": false, "errors": ["one sentence each, all there are"]}.
// Nothing of a refused request takes effect. Unknown members are refused (an older service says
// that it does not know them), and so are unknown schemas. A message that is not a JSON object is
// answered with id 0. The service sends nothing unasked.
//
//   op           request -> answer
//   hello        {} -> version, pid, start_unix_ns, testbed (file name), nics: [{name, worker,
//                rate_mbps, mtu, base_rtt_ns}], attach_socket
//   telemetry    {} -> the descriptor of the telemetry segment (dataplane/telemetry/segment.h)
//   status       {} -> status: see docs/service.md; a text longer than a message comes as the
//                descriptor of a memfd instead: bytes
//   parameters   {} -> nics: [{name, algorithm, profile, values: {name: value}, plugin?: {path,
//                sha256}, fallback: {...}, generation, arm, epoch}]: what is in force
//   configure    {nics: [names] (absent: all), algorithm?, sha256?, profile?, params?: {name:
//                value}, dry_run?: bool} -> nics: [{name, generation, changed: bool}]. An algorithm
//                or profile given starts from that profile's values; otherwise from those in force.
//                All NICs, or none. Ends up as the champion. Refused while a trial runs.
//   trial        {name, nics? | clusters?: [[names], ...], candidate: {algorithm?, profile?,
//                params?}, guard?: {limits, see below}, hold_ms} -> arms: [{algorithm, values},
//                ...]. What is in force becomes arm 0, the champion; nothing changes yet. One trial
//                at a time for each NIC. With clusters (2 to 16, each NIC in one) an arm is of the
//                port that data goes to.
//   use_arm      {name, arm: 0 | 1, epoch: 1..255, renew?: bool} -> generation. Puts an arm of the
//                trial in force on its NICs; new messages carry the epoch. Renews the hold, unless
//                `renew` is false. For a trial with clusters `arms` instead of `arm`: a list, 0 or
//                1 for each cluster.
//   renew        {name} -> remaining_ms. A trial that is not renewed for hold_ms is over
//                ("abandoned"), and the champion is put back.
//   end_trial    {name, keep: "champion" | "candidate"} -> nics as of configure
//   trials       {} -> trials: [{name, nics, clusters?, arm, arms?, epoch, hold_ms, remaining_ms,
//                state: "running" | "tripped" | "abandoned", why}]; those that ended in trouble
//                stay until end_trial. With clusters `arm` is 1 while any of them has it.
//   guard        {} -> nics: [{name, limits, trips: [{number, at_unix_ns, rule, figure, limit,
//                action, nic, trial, arm?, detail?}], latched: bool}]; arm: with two at a time, the
//                one that broke the limit
//   clear_guard  {nics?} -> {}: releases the latch, so that trials are allowed again
//   load_plugin  {path, sha256?} -> plugin: its table (dataplane/config/algorithm_catalogue.h).
//                Refused if service.plugin_folders does not allow it (plugin_shelf.h), or the
//                file's checksum differs. Changes no NIC; a loaded plug-in stays loaded.
//   plugins      {} -> plugins: [tables] of all that are loaded
//   capture      {nic, bytes?: of the ring, rounded up to a power of two (33554432), snap?: what is
//                kept of a frame (65535)} -> bytes, page_bytes, and two descriptors: of the ring,
//                read-only, and of the page where the reader writes its position
//                (dataplane/port/capture/capture_ring.h). From then on the ring gets every packet
//                of the NIC, until the connection ends. One capture per NIC at a time, eight per
//                service.
//
//   fault        {events: [{target, action, rate_mbps?, delay_ns?, probability?, severity?, seed?,
//                direction?, after_us?, for_us?}]} -> links: how many change. What happens to
//                emulated links, after_us from now, for for_us or until something else does.
//                target: "h0", "h0.1" (its port 1), or as `link` of an [[event]]; action and
//                direction as there, or a kind of [[fault]] (severity, seed), or "clear", which
//                also takes back what is planned. All events, or none. Clocks of any NIC can be
//                wrong, as probes see it.
//
//   take_away    {nics: [names]} -> {}: as if they were pulled out of the machine. Their links go
//                down, programs get IBV_EVENT_DEVICE_FATAL and RDMA_CM_EVENT_DEVICE_REMOVAL, and
//                cannot open them again until the service is restarted. All of them, or none.
//
//   probe_open   {clocks?: [{nic, offset_ns?, drift_ppb?, jump_ns?, jump_after_us?}]} -> nics:
//                [{name, address, qp_number, qkey}]. Each NIC gets a queue pair for probes, until
//                the connection ends; one connection at a time. clocks: NICs whose clocks are off,
//                for tests.
//   probe_begin  {session, peers: [{address, qp_number, qkey}], rate?: probes a second of a pair of
//                NICs (20), share?: of a link's rate (0.0005), at most 0.01, paths?: source ports
//                (1), class? (3)} -> interval_us. From then on every NIC probes all peers but
//                itself, and answers them alone. Once for each connection. `peers` may be of other
//                services.
//   probes       {} -> nics: [{name, address, refused, clock: {now_ns, raw_ns}, peers: [{address,
//                sent, answered, lost, fabric_ns, host_ns, there_ns, back_ns: {p50, p99} or null,
//                offset_ns, drift_ppb, uncertainty_ns, clock_probes, clock_restarts, paths: [{port,
//                sent, answered, lost, fabric_ns}]}]}]. From the latest 512 probes of a pair.
//                there: from the NIC to the peer; offset: what the peer's clock shows less what the
//                NIC's does. raw_ns: CLOCK_MONOTONIC_RAW at the same moment as now_ns.
//
// An algorithm of `configure` and of a candidate is a name, or "plugin:PATH" (with sha256, if
// given). The plug-in is loaded as by load_plugin, even in a dry run: only the plug-in has its
// table.
//
// An answer, other than that of status, that is longer than a message comes as a whole in a memfd,
// and the message has {schema, id, ok, bytes}.
//
// Limits of the guard (hard ones; null switches a rule off), each of one look of 100 ms:
//   retransmitted_share    1e-6  of the data packets sent, with more than
//   retransmitted_packets  10    of them
//   pause_share            0.01  of the time, of the NIC's link towards an emulated switch
//   stall_ms               50    messages in flight, and nothing sent, received or acknowledged
//   drops_packets          10    at the emulated switch's port towards the NIC
// and always: a plug-in that is put into quarantine (rule plugin_quarantine), at once.
// The service judges its workers' counters every 100 ms. Three breaches in a row, or one of ten
// times a limit, put the champion back, latch and report. If no candidate is in force, the guard
// only reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "dataplane/base/text/enum_text.h"

namespace paceline::service {

inline constexpr int kControlSchema = 1;
inline constexpr std::size_t kMostControlBytes = 64 * 1024;
inline constexpr const char* kControlSocket = "control.sock";

enum class TrialState : std::uint8_t { running, tripped, abandoned };
inline constexpr EnumTexts<3> kTrialStates{"running", "tripped", "abandoned"};

// Beside the socket of programs: the same folder, with that socket's name in front if it is not the
// default one ("paceline.sock" -> "control.sock", "x.sock" -> "x.sock.control").
inline std::string control_socket_beside(const std::string& attach_socket) {
  const std::size_t slash = attach_socket.rfind('/');
  const std::string folder =
      slash == std::string::npos ? std::string() : attach_socket.substr(0, slash + 1);
  return attach_socket.substr(folder.size()) == "paceline.sock" ? folder + kControlSocket
                                                                : attach_socket + ".control";
}

}  // namespace paceline::service
