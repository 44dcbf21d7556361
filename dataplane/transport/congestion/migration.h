// Changes in progress: to another setup, or because a peer turns out to speak the control protocol.
// Queue pairs and address handles change one by one; messages do not notice (docs/transport.md,
// "Changing congestion control under way").
//
// Values are replaced at once: contexts read their block with every event. A decision made with the
// old values holds until the context's next event, so every context gets one. Contexts are visited
// one after the other over kChangeRtts round trips, and hosts are not in step. If all contexts
// restarted at the same time, the shared queue would show nothing but that restart.
#pragma once

#include <cstdint>

#include "cc/interface/event.h"
#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/grant_exchange.h"
#include "dataplane/transport/congestion/peer_directory.h"
#include "dataplane/transport/congestion/plugin_watch.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/ends/requester.h"

namespace paceline::transport {

// Round trips within which all contexts are told of another setup.
inline constexpr std::int64_t kChangeRtts = 10;

class Migration {
 public:
  Migration(EngineCore& core, Scheduler& scheduler, CongestionManager& congestion,
            CongestionSetups& setups, PeerDirectory& peers, GrantExchange& grants,
            const PluginWatch& watch)
      : core_(core),
        scheduler_(scheduler),
        congestion_(congestion),
        setups_(setups),
        peers_(peers),
        grants_(grants),
        watch_(watch) {}

  // Puts the values in force; contexts are told, and change their algorithm, one by one. Requires a
  // setup that is not refused (CongestionSetups::refusal).
  void begin(const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch);
  // The same with two arms at a time.
  void begin(const ArmsByPeer& arms, std::uint8_t epoch);
  // Some contexts have not been told of the newest setup.
  bool under_way() const { return change_.visited != change_.places(); }

  // The peer has said what it can do: this end uses that from now on, as far as it can itself.
  void adopt_peer(const PeerNews& news);
  // Offers selective repeat to a peer that speaks XACK, if this end offers it, too.
  void offer_selective(QueuePair& qp);

  // Visits the contexts whose time has come.
  void poll();
  Picos next_deadline() const { return under_way() ? next_visit() : change_.receiver_until; }

 private:
  Picos next_visit() const;
  // Which queue pair is told of the change next (address handles follow), and when.
  struct Change {
    Picos begin{0};
    std::uint32_t first = 0;    // where it began: the change before may not be complete
    std::uint32_t visited = 0;  // places from there on
    std::uint32_t queue_pairs = 0;
    std::uint32_t handles = 0;
    Picos resume_at{0};            // set when the last poll visited as many as allowed
    Picos receiver_until{kNever};  // peers that change late get grants until then

    std::uint32_t places() const { return queue_pairs + handles; }
    std::uint32_t next() const { return (first + visited) % places(); }
  };

  void begin(const CongestionSetups::Before& before);
  void finish();
  void drop_receiver();
  bool anything_left() const;
  cc::Handover hand_over(const CongestionContext& context, const QueuePair* qp) const;
  void notify(std::uint32_t index, CongestionContext& context);
  void migrate(QueuePair& qp);
  void migrate(AddressHandle& handle);
  void migrate_all(std::uint32_t peer);
  void convert(std::uint32_t index, cc::AlgorithmId target, const cc::Handover& handover);
  void move(QueuePair& qp, cc::AlgorithmId target);
  void move(AddressHandle& handle, cc::AlgorithmId target);
  Rate part_of(CongestionContext& context, Rate rate);
  void settle_left(std::uint32_t index, bool had_work);
  std::uint64_t leave_datagrams(const AddressHandle& handle);

  EngineCore& core_;
  Scheduler& scheduler_;
  CongestionManager& congestion_;
  CongestionSetups& setups_;
  PeerDirectory& peers_;
  GrantExchange& grants_;
  const PluginWatch& watch_;
  Change change_;
};

}  // namespace paceline::transport
