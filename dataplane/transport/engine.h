// The transport engine of one NIC: poll(now) and next_deadline(). It reads no clock, never sleeps,
// and touches no device but through its Port. The same class runs in virtual time, on a real-time
// loopback and on a NIC.
//
// One thread calls everything. Time never goes back from call to call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataplane/telemetry/segment.h"
#include "dataplane/transport/congestion/algorithm_runner.h"
#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/control_messages.h"
#include "dataplane/transport/congestion/grant_exchange.h"
#include "dataplane/transport/congestion/migration.h"
#include "dataplane/transport/congestion/peer_directory.h"
#include "dataplane/transport/congestion/plugin_watch.h"
#include "dataplane/transport/congestion/scheduler.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/ends/domain_receiver.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/transport/ends/responder.h"
#include "dataplane/transport/engine_lookahead.h"
#include "dataplane/transport/engine_view.h"
#include "dataplane/transport/qp_state.h"
#include "dataplane/transport/receive_path.h"
#include "dataplane/transport/transmit_path.h"

namespace paceline::transport {

class Engine {
 public:
  // The port must outlive the engine. The values in config.primary and .fallback must have the
  // length and ranges of the algorithms' ParamSpec tables (cc::resolve_params checks them).
  Engine(EngineConfig config, Port& port);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- control operations: may allocate ---
  RegionTable& regions() { return core_.regions; }
  // Creates a queue pair in state RESET. Returns its number, 0 if there are no more.
  std::uint32_t create_qp(const QpConfig& config);
  // Changes its state and attributes: all that `mask` (of qp_attribute) names, or nothing.
  ModifyResult modify_qp(Picos now, std::uint32_t qp_number, const QpAttributes& attributes,
                         std::uint32_t mask);
  std::optional<QpAttributes> query_qp(std::uint32_t qp_number) const;
  // What the other end needs for its connect().
  QpAddress address_of(std::uint32_t qp_number, Psn first_psn) const;
  // Goes to RTS in one step, when both ends are known. `source_port` is the path entropy of the
  // flow. False when the queue pair does not exist or is beyond INIT.
  bool connect(Picos now, std::uint32_t qp_number, const QpAddress& remote, Psn first_psn,
               std::uint16_t source_port);
  // The number of peers of a class with connections here, as it is told to them
  // (peer_count_hint_of); and, where it does not come by HELLO, the number of peers that `ip` has.
  std::uint8_t peer_count_hint(std::uint8_t traffic_class) const {
    return peers_.peer_count_hint(traffic_class);
  }
  void on_peer_count_hint(Picos now, const wire::IpAddress& ip, std::uint8_t traffic_class,
                          std::uint8_t peer_count_hint);
  void destroy_qp(Picos now, std::uint32_t qp_number);
  // Destroys a queue pair whose owner is gone, and tells the peer. The peer's queue pair then fails
  // now, instead of when its retries are used up, or never if it only waits. For RC; others are
  // just destroyed.
  void abandon_qp(Picos now, std::uint32_t qp_number);
  // Limits the rate of what its requests send, on top of congestion control; READ responses are not
  // limited. `burst_bytes`: how much may be sent at once after a pause, or that of
  // EngineConfig::pacing_catch_up if it is more. A rate of 0: no limit. Ends with RESET. False when
  // there is no such queue pair.
  bool limit_rate(Picos now, std::uint32_t qp_number, Rate rate, std::uint32_t burst_bytes);
  // The owner had no room for the contents of a completion queue. This has the effect of an
  // overflow of the queue itself, from the next poll on.
  void overrun(CompletionQueue& queue) {
    queue.overrun();
    core_.cq_overrun = true;
  }
  // A destination for datagrams of queue pairs of `pd`; returns a number for
  // WorkRequest::address_handle.
  std::uint32_t create_address_handle(Picos now, std::uint32_t pd, const QpPath& path);
  // False when there is none, or datagrams to it are still queued.
  bool destroy_address_handle(Picos now, std::uint32_t number);
  // From now on peers reach this datagram queue pair by number 1, too. False when it does not
  // exist, or is not for datagrams.
  bool serve_management(std::uint32_t qp_number);
  // A shared receive queue that XRC requests name by the returned number; 0: the numbers have run
  // out. The queue must outlive its removal.
  std::uint32_t add_domain_queue(const DomainQueue& queue) {
    return core_.domain_queues.add(queue);
  }
  void remove_domain_queue(Picos now, std::uint32_t number);
  // The next message on this queue pair is a new flow: its congestion state starts afresh (per_qp
  // algorithms only; a channel shared with others keeps what it knows).
  void restart_congestion(Picos now, std::uint32_t qp_number);

  // Puts other values, or other algorithms, in force for everything that exists or will exist. A
  // poll must follow at the same time. Values are in force at once. Contexts change their algorithm
  // one by one over the next ten round trips (more, with more than some thousand queue pairs); no
  // message is lost or restarted. `arm` and `epoch` are written into all contexts as they are told,
  // and into new ones, instead of QpConfig::arm. Values come from cc::resolve_params for this port.
  // Throws std::invalid_argument with the reason if reconfigure_refusal() gives one.
  void reconfigure(Picos now, const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch);
  std::string reconfigure_refusal(const CcSetup& setup) const { return setups_.refusal(setup); }
  // The same with two arms at a time, by the peer that the data goes to (arms.h). Contexts change
  // to their arm one by one, too; new contexts have it from the start.
  void reconfigure(Picos now, const ArmsByPeer& arms, std::uint8_t epoch);
  std::string reconfigure_refusal(const ArmsByPeer& arms) const { return setups_.refusal(arms); }

  // --- data path ---
  // Takes effect at the next poll, which must follow at the same time.
  PostResult post_send(Picos now, std::uint32_t qp_number, const WorkRequest& request);
  // Posts to the queue pair's receive queue. (That queue may also be used directly, but it does not
  // know that its owner is in error, where requests are flushed at once.) False when the queue is
  // full, or the queue pair is in RESET.
  bool post_receive(Picos now, std::uint32_t qp_number, const ReceiveRequest& request);
  // Events about queue pairs and completion queues, oldest first.
  std::size_t poll_events(std::span<AsyncEvent> out) { return core_.events.poll(out); }
  // Work of this queue pair that waited for memory can continue.
  void memory_ready(Picos now, std::uint32_t qp_number);

  void poll(Picos now);
  // A poll in two halves, for a driver that runs its application between them. take() completes
  // what has arrived; what the application posts in answer leaves with give(), which must follow at
  // the same time. take() returns how many packets it received.
  std::size_t take(Picos now);
  void give(Picos now);
  // The host was stopped for `gap`, which ends now, and could not poll. Packets from peers have
  // waited meanwhile. So retransmission timers do not count this time, and no round trip that spans
  // it reaches congestion control. The owner of the clock calls this right before poll(now) or
  // take(now). Stops of the peer are not known.
  void stopped(Picos now, Picos gap);
  // When poll has something to do next, apart from packets that arrive: later than the last poll,
  // kNever when idle.
  [[gnu::always_inline]] Picos next_deadline() const {
    Picos next = earlier(scheduler_.next_deadline(), core_.qp_timers.next_deadline_settled());
    if (core_.control_active) [[unlikely]]
      next = earlier(next, control_deadline());
    if (core_.control_head != nullptr) [[unlikely]]
      next = earlier(next, core_.port.tx_ready_at(kControlClass));
    return next == kNever ? kNever : later(next, core_.now + Picos{1});
  }
  // Loads what a poll will read into the cache. Valid as long as the engine lives.
  EngineLookahead lookahead() const { return {core_, scheduler_, requester_}; }

  // --- looking in: changes nothing ---
  // Valid as long as the engine lives.
  EngineView view() const { return {core_, setups_, migration_, grants_, plugins_}; }
  const telemetry::EngineCounters& counters() const { return core_.counters; }

 private:
  [[gnu::always_inline]] std::size_t take_in(Picos now);
  [[gnu::always_inline]] void send_out();
  void run_qp_timers();
  Picos control_deadline() const;
  void poll_control();
  void hear_plugins();

  EngineCore core_;
  Scheduler scheduler_;
  CongestionManager congestion_;
  Requester requester_;
  Responder responder_;
  TransmitPath transmit_;
  ReceivePath receive_;
  AlgorithmRunner runner_;
  PluginWatch plugins_;
  CongestionSetups setups_;
  ControlMessages messages_;
  PeerDirectory peers_;
  GrantExchange grants_;
  Migration migration_;
  QpStatePart states_;
};

}  // namespace paceline::transport
