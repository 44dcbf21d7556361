// What the edge of a fabric knows of a stretch of time: what ranks, NICs and queue pairs measure,
// and the description of the fabric that an operator has. Nothing that only an emulator sees, such
// as the queues of switches. Plain values: a virtual world fills it (tools/diagnose), a testbed
// can.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::diagnosis {

// A rank before one of its collectives. Ranks of the same `call` are peers.
struct RankStep {
  std::uint32_t call = 0;
  double computing_us = 0;  // since the collective before
  double late_us = 0;       // entered so long after the median rank; negative: before it
};

struct RankEvidence {
  std::uint32_t nic = 0;
  std::vector<RankStep> steps;  // in the order of time
};

// How the messages of one NIC fared that it sends and that it receives through the fabric: the
// median of time over ideal, 0 without any. Each NIC of a message had to carry what shared it then,
// and the message is as slow as the faster of the two.
struct NicPace {
  double sent = 0;
  double received = 0;
};

// The first and the last slice of a part.
struct PartOfTime {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct NicEvidence {
  std::string name;
  double rate_bps = 0;         // of all its ports, by the description
  std::vector<NicPace> paces;  // by part of the time, as in Evidence::parts
};

struct PortChange {
  Picos at{0};
  bool up = false;
};

// A port of a NIC that went down, or came up.
struct PortEvidence {
  std::string name;
  std::uint32_t nic = 0;
  std::vector<PortChange> changes;  // in the order of time; up before the first
};

// A queue pair in a window, at its sender.
struct PairWindow {
  std::uint64_t bytes = 0;     // payload sent for the first time
  std::uint32_t losses = 0;    // times that packets were found missing
  std::uint32_t timeouts = 0;  // of these, those that nobody reported
  std::uint32_t marks = 0;     // congestion notifications that arrived
  std::uint32_t rtt_ns = 0;    // smoothed, at the end of the window; 0: nothing was measured in it
};

struct PairEvidence {
  std::uint32_t src = 0;  // NICs
  std::uint32_t dst = 0;
  // Directed links by which its packets go, by its source port and the description: 2 * link, + 1
  // from the link's second end to the first. Empty: there are several ways.
  std::vector<std::uint32_t> way;
  std::uint32_t base_rtt_ns = 0;  // of an empty fabric, by the description
  std::vector<PairWindow> windows;
};

// A link of the fabric's description.
struct LinkEvidence {
  std::string name;
  std::string first;  // its ends by name
  std::string second;
  double rate_bps = 0;
  bool of_host = false;
};

struct Evidence {
  // The time is cut into so many slices, equally long. A part of it is two or more that follow one
  // another: what was wrong may have begun late, and ended.
  static constexpr std::uint32_t kSlices = 8;
  static constexpr std::uint32_t kParts = kSlices * (kSlices - 1) / 2;

  Picos until{0};                   // from 0 on
  std::vector<PartOfTime> parts;    // kParts
  std::vector<Picos> window_ends;   // of PairEvidence::windows
  std::vector<RankEvidence> ranks;  // empty: no job
  std::vector<NicEvidence> nics;
  std::vector<PortEvidence> ports;  // those that changed
  std::vector<PairEvidence> pairs;  // those that sent
  std::vector<LinkEvidence> links;
  // By sender and receiver, sender * nics + receiver: the median of their messages' time over
  // ideal; 0 without any.
  std::vector<double> slowness;
  std::uint32_t packet_bytes = 4096;
  // How many times as much as its uplinks carry a leaf can have from its hosts; 1 or less: no
  // more.
  double oversubscription = 0;
};

}  // namespace paceline::diagnosis
