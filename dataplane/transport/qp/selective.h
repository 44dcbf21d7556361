// Selective repeat: the state of a queue pair beyond that of go-back-N. The sender notes for every
// packet of its window when and how it was sent and whether it has arrived. The receiver notes
// which packets have come ahead of the expected one, and holds those that must wait for their turn.
// Both are rings indexed by packet sequence number; they exist only if both ends speak XACK.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/transport/state/round_trip.h"
#include "dataplane/transport/state/selective/early_packets.h"
#include "dataplane/transport/state/selective/loss_patience.h"
#include "dataplane/transport/state/selective/marked_bytes.h"
#include "dataplane/transport/state/selective/path_set.h"
#include "dataplane/transport/state/selective/pending_xack.h"
#include "dataplane/transport/state/selective/response_asks.h"
#include "dataplane/transport/state/selective/sent_window.h"

namespace paceline::transport {

// A packet that the peer refused, and the status that its request completes with.
struct Refusal {
  Psn psn;
  CompletionStatus status;
};

struct SelectiveSend {
  explicit SelectiveSend(std::uint32_t packets) : window(packets) {}

  SentWindow window;
  ResponseAsks asks;
  Picos newest_sent{-1};  // latest time of sending among packets that have arrived
  // The same by plane, where there are several. Packets of one plane overtake those of another by
  // the time for which the host reads the other later.
  std::array<Picos, PathSet::kMostPlanes> newest_on{};
  RoundTripEstimate round_trip;
  std::uint32_t last_rtt_ns = 0;  // a queue that has just grown shows here first
  MarkedBytes marked;
  LossPatience patience;
  std::uint8_t probes = 0;         // of the tail, since something arrived
  std::uint8_t held = 0;           // times in a row that nothing was in flight at the timeout
  std::optional<Refusal> refused;  // by the peer; requests before it may complete
  Picos progress_at{0};            // in EngineCore::awake()
  Picos reorder_at = kNever;       // a packet counts as lost then
  Picos response_at = kNever;      // missing answers are checked then
};

struct SelectiveReceive {
  explicit SelectiveReceive(std::uint32_t window) : early(window), repairs(64) {}

  EarlyPackets early;
  PendingXack xack;
  FixedRing<ResponseAsk> repairs;     // READ responses asked for again, oldest first
  std::uint64_t continued_bytes = 0;  // of the WRITE in progress, its earlier packets
  // Whether the peer repairs READ responses one by one, and so takes them from any path. The paths
  // of its own requests show it: each used another path, `turns` times in a row.
  bool read_by_any_path = false;
  std::uint8_t turns = 0;
  std::uint16_t read_port = 0;  // of the newest READ request

  void note_read(std::uint16_t port) {
    turns = port == read_port ? std::uint8_t{0} : static_cast<std::uint8_t>(turns + 1);
    read_port = port;
    if (turns >= 3) read_by_any_path = true;
  }
};

// Probes of the tail before the retransmission timer starts.
inline constexpr std::uint8_t kProbes = 2;

struct SelectiveState {
  explicit SelectiveState(std::uint32_t window) : send(window), receive(window) {}

  PathSet paths;  // of requests and of responses alike
  SelectiveSend send;
  SelectiveReceive receive;
};

}  // namespace paceline::transport
