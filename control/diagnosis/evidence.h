// What the edge of a fabric knows about a stretch of time: what ranks, NICs and queue pairs
// measure, and the operator's description of the fabric. It holds nothing that only an emulator
// sees, such as the queues of switches. tools/diagnose fills it from a virtual world or a testbed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::diagnosis {

// A rank before one of its collectives. Ranks of the same `call` are peers.
struct RankStep {
  std::uint32_t call = 0;
  double computing_us = 0;  // since the previous collective
  double late_us = 0;       // entered this much later than the median rank; negative: earlier
};

struct RankEvidence {
  std::uint32_t nic = 0;
  std::vector<RankStep> steps;  // in the order of time
};

// How slow the messages are that a NIC sends and receives through the fabric: the median of their
// time over the ideal time; 0 without messages. The ideal time is that of all messages that shared
// the NIC until then. A message has two NICs: the lower of their values counts.
struct NicPace {
  double sent = 0;
  double received = 0;
};

// A part of the time, from its first to its last slice.
struct PartOfTime {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// What a NIC counted in a window, over all its ports.
struct NicWindow {
  double pausing_us = 0;                // it told its switch to pause
  std::uint64_t reclassed_packets = 0;  // data that it sent in another class than configured
  // What it sent on its wires, and for how long its transmitters were busy: bytes over time is the
  // rate at which packets leave, whatever the load. 0: not measured.
  double sent_bytes = 0;
  double sending_us = 0;
  std::uint64_t received_bytes = 0;    // payload, each byte once
  std::uint64_t received_packets = 0;  // of data
  std::uint64_t marked_packets = 0;    // packets among these that switches had marked
  // Sent to it and not acknowledged at the end of the window. Below 0: not measured; it then
  // follows from what was sent and received in all windows so far.
  double under_way_bytes = -1;
};

struct NicEvidence {
  std::string name;
  double rate_bps = 0;         // of all its ports together
  std::vector<NicPace> paces;  // for each of Evidence::parts
  std::vector<NicWindow> windows;
};

struct PortChange {
  Picos at{0};
  bool up = false;
};

// A port of a NIC whose link went down or came up.
struct PortEvidence {
  std::string name;
  std::uint32_t nic = 0;
  std::vector<PortChange> changes;  // in the order of time; the link is up before the first
};

// What the sender of a queue pair counted in a window.
struct PairWindow {
  std::uint64_t bytes = 0;     // payload sent for the first time
  std::uint32_t losses = 0;    // how often packets were found missing
  std::uint32_t timeouts = 0;  // losses found by a timeout alone
  std::uint32_t marks = 0;     // congestion notifications that arrived
  std::uint32_t rtt_ns = 0;    // the least smoothed one that was sampled; 0: not measured
};

struct PairEvidence {
  std::uint32_t src = 0;  // number of the NIC
  std::uint32_t dst = 0;
  // The directed links of its path, from its source port and the description: 2 * link, plus 1 from
  // the link's second end to its first. Empty if packets take several paths.
  std::vector<std::uint32_t> way;
  std::vector<std::uint32_t> ack_way;  // the same of its acknowledgements, from dst to src
  std::uint32_t base_rtt_ns = 0;       // of an empty fabric
  std::vector<PairWindow> windows;
};

// A link of the fabric's description.
struct LinkEvidence {
  std::string name;
  std::string first;  // the names of its ends
  std::string second;
  double rate_bps = 0;
  bool of_host = false;
};

struct Evidence {
  // The time is cut into equal slices. A part is any two or more consecutive slices: a fault may
  // begin late and end early.
  static constexpr std::uint32_t kSlices = 8;
  static constexpr std::uint32_t kParts = kSlices * (kSlices - 1) / 2;

  Picos until{0};                   // the time begins at 0
  std::vector<PartOfTime> parts;    // kParts
  std::vector<Picos> window_ends;   // of PairEvidence::windows
  std::vector<RankEvidence> ranks;  // empty: no job
  std::vector<NicEvidence> nics;
  std::vector<PortEvidence> ports;  // those with changes
  std::vector<PairEvidence> pairs;  // those that sent data
  std::vector<LinkEvidence> links;
  // At sender * nics + receiver: the median of their messages' time over the ideal; 0 without any.
  std::vector<double> slowness;
  std::uint32_t packet_bytes = 4096;
  bool marks = false;  // switches mark packets in long queues
  // Capacity of a leaf's links to hosts over that of its uplinks.
  double oversubscription = 0;
};

// How long a window of PairEvidence::windows is.
inline double window_us(const Evidence& evidence, std::size_t window) {
  const Picos begin = window == 0 ? Picos{0} : evidence.window_ends[window - 1];
  return static_cast<double>((evidence.window_ends[window] - begin).count) / 1e6;
}

}  // namespace paceline::diagnosis
