// The congestion contexts of an engine: makes and destroys them, assigns queue pairs to them, tells
// their algorithms what happens, and puts the decisions in force.
#pragma once

#include <cstdint>

#include "cc/interface/event.h"
#include "dataplane/transport/congestion/algorithm_runner.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/grant_exchange.h"
#include "dataplane/transport/congestion/peer_directory.h"
#include "dataplane/transport/congestion/scheduler.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class alignas(64) CongestionManager {
 public:
  CongestionManager(EngineCore& core, Scheduler& scheduler, AlgorithmRunner& runner,
                    const CongestionSetups& setups, PeerDirectory& peers, GrantExchange& grants)
      : core_(core),
        scheduler_(scheduler),
        runner_(runner),
        grants_(grants),
        setups_(setups),
        peers_(peers) {}

  // --- queue pairs and address handles ---
  // Finds or makes the peer entry and the context that the queue pair's data is charged to.
  void attach(QueuePair& qp, const wire::IpAddress& ip, const wire::MacAddress& mac);
  void detach(QueuePair& qp);
  // The same for an address handle whose path is set. All handles to the peer and class share the
  // context.
  void attach(AddressHandle& handle);
  void detach(AddressHandle& handle);
  // Forgets what the context has learned: a fresh flow starts on an old queue pair. No effect on a
  // context that several queue pairs share.
  void restart(QueuePair& qp);
  // Does what queue-pair code has requested since the last call. The caller of that code must call
  // this before anything else happens.
  [[gnu::always_inline]] void perform() {
    if (core_.has_actions) [[unlikely]]
      perform_all();
  }
  // Bytes of the context have left the network, or do not belong to it any more: queue pairs that
  // they held up may continue.
  void release(std::uint32_t index) {
    if (core_.contexts[index].place == ContextPlace::blocked) scheduler_.place(index);
  }
  // UD: the queue pair moves to the context of its next datagram, if it has one.
  void retarget(QueuePair& qp);
  // Activates the queue pair if it has work, else deactivates it.
  void settle(QueuePair& qp) {
    if (!scheduler_.has_work(qp)) {
      scheduler_.deactivate(qp);
      return;
    }
    const bool waited = !qp.active;
    scheduler_.activate(qp);
    if (qp.response_ready) scheduler_.note_response(qp);
    if (waited && core_.contexts[qp.context].backlog_bytes == 0) report_bare_backlog(qp);
    note_work(qp.context);
  }

  // --- events ---
  // Tells the algorithm and applies its decision. `event` needs only the fields of its signal;
  // totals are filled in here. Signals that the algorithm does not want are dropped.
  void deliver(std::uint32_t index, cc::Event& event);
  // The algorithm in charge of the context wants this signal.
  bool wants(std::uint32_t index, cc::Signal signal) const {
    return (core_.contexts[index].wants & cc::signal_bit(signal)) != 0;
  }
  // Work that was posted before now belongs to the context, or is to be sent again: its algorithm
  // is told as of a message.
  void announce_backlog(std::uint32_t index);
  void tell_of_work();
  // Tells the algorithm, if it wants to know, when the context has nothing left to send.
  void report_idle(std::uint32_t index);
  // A CNP for a UD queue pair, from a peer that datagrams were sent to.
  void on_datagram_cnp(const wire::IpAddress& source);
  // A switch sends a notice about packets to this peer; the notice carries the peer's address as
  // its source.
  void on_notice(const wire::IpAddress& peer, const NoticeMessage& notice);
  // A peer, given by its index, has told how many peers it has. Unknown peers are ignored.
  void on_peer_count_hint(std::uint32_t index, std::uint8_t peer_count_hint);
  void on_peer_count_hint(const wire::IpAddress& ip, std::uint8_t traffic_class,
                          std::uint8_t peer_count_hint);
  // A plug-in is in quarantine. Tells its contexts: a context without events would keep the last
  // decision of the plug-in.
  void leave_plugin(cc::AlgorithmId id);

  // --- time ---
  // Runs contexts and timers of algorithms whose time has come.
  void run_due();
  // Delivers the shares of the uplink that are due. Call it again after events.
  void deliver_shares();

  // --- for Migration ---
  // Delivers Signal::start. `arm` holds until the first change of setup.
  std::uint32_t make_context(std::uint32_t peer, cc::AlgorithmId algorithm,
                             std::uint8_t traffic_class, std::uint8_t arm,
                             const cc::Handover* handover);
  // The queue pair, whose peer is known, gets a context of its own, or joins the peer's channel.
  void join_context(QueuePair& qp, cc::AlgorithmId algorithm, const cc::Handover* handover);
  // Takes the queue pair out of its context, or takes one user away from it. The last one destroys
  // it.
  void leave_context(QueuePair& qp);
  void leave_context(std::uint32_t index);
  // Gives back what the peer has granted, and the share of the uplink.
  void close_channel(std::uint32_t index);
  // Another algorithm takes the context over, with everything that waits or is in flight.
  void replace_algorithm(std::uint32_t index, cc::AlgorithmId algorithm,
                         const cc::Handover& handover);
  // The fallback of the context's arm has changed, and the context is on its fallback.
  void change_fallback(CongestionContext& context) { runner_.change_fallback(context); }

 private:
  std::uint32_t create_context(cc::AlgorithmId algorithm, std::uint8_t traffic_class,
                               std::uint32_t peer, const cc::Handover* handover);
  void destroy_context(std::uint32_t index);
  void start_algorithm(std::uint32_t index, CongestionContext& context, cc::AlgorithmId algorithm,
                       const cc::Handover* handover);
  void apply(std::uint32_t index, CongestionContext& context, Rate rate_before,
             const cc::Event& event);
  static std::uint64_t read_backlog(const QueuePair& qp);
  void report_bare_backlog(const QueuePair& qp);
  // Payload, or a packet without any, is to be sent again. An algorithm that was told that nothing
  // is left gave up its grant, and asks for nothing unless it is told of this work. tell_of_work()
  // tells it if no other event of the queue pair, a loss above all, has done so.
  void note_work(std::uint32_t context) {
    if (core_.contexts[context].told_idle) [[unlikely]] {
      if (untold_ != context) tell_of_work();
      untold_ = context;
    }
  }
  void forget_peer(std::uint32_t index);
  void perform_all();
  void perform(Action& action);
  void resume(QueuePair& qp);
  void resume_and_report(QueuePair& qp);

  EngineCore& core_;
  Scheduler& scheduler_;
  AlgorithmRunner& runner_;
  GrantExchange& grants_;
  const CongestionSetups& setups_;
  PeerDirectory& peers_;
  std::uint32_t untold_ = kNoIndex;  // context of note_work()
};

}  // namespace paceline::transport
