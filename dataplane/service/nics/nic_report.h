// Report of a NicSet: plain numbers, for status and telemetry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/telemetry/counters.h"

namespace paceline::service {

// One egress port of an emulated switch. Counts since the start; queues in bytes.
struct QueueReport {
  std::string from;  // "leaf0"
  std::string to;    // "host1", with the name of the NIC if that host is one
  std::uint64_t queued_bytes = 0;
  std::uint64_t most_bytes = 0;
  double mean_bytes = 0;  // over time
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t marked = 0;
  std::uint64_t drops = 0;
  Picos paused{0};
};

// Queue lengths that packets found when they came to a port: not thinned out by idle time.
struct DepthReport {
  std::uint64_t packets = 0;
  double mean = 0;
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t most = 0;
};

struct FabricReport {
  bool emulated = false;  // false: nothing here means anything
  std::uint64_t injected_packets = 0;
  std::uint64_t delivered_packets = 0;
  std::uint64_t marked_packets = 0;
  std::uint64_t trimmed_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t duplicated_packets = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t link_failures = 0;
  std::uint64_t pause_frames = 0;
  Picos pause_time{0};
  std::uint64_t buffer_most = 0;  // bytes in use at a time in any switch
  struct Drops {
    std::string_view reason;
    std::uint64_t packets = 0;
  };
  std::vector<Drops> drops;
  DepthReport last_hop;  // ports towards hosts
  DepthReport core;      // the other ones
  std::vector<QueueReport> queues;
};

// A port of this machine: what its device itself has counted since it was made, over all queues.
struct PortReport {
  bool known = false;  // false: there is no device, and nothing here means anything
  std::uint64_t rx_missed = 0;
  std::uint64_t rx_no_buffer = 0;
  std::uint64_t rx_errors = 0;
  std::uint64_t tx_errors = 0;
  std::string_view pause;     // "off", "receive", "send", "both"; "": the device does not say
  bool counts_pause = false;  // the four below are counted
  std::uint64_t pause_sent = 0;
  std::uint64_t pause_received = 0;
  std::uint64_t priority_pause_sent = 0;
  std::uint64_t priority_pause_received = 0;
};

// Payloads that a port's packets referred to in place of having them (port/dpdk/dpdk_loans.h),
// since the start, in packets.
struct LoanReport {
  std::uint64_t sent = 0;
  std::uint64_t copied = 0;    // to be sent so, but too many were out
  std::uint64_t recalled = 0;  // sent packets that were copied on the way: memory was recalled
  std::uint64_t overdue = 0;   // recalled packets that were read for over a tenth of a second more
  std::uint64_t received = 0;  // read in the sender's memory
};

// When packets came: by the device's clock where it stamps them (port/device_clock.h).
struct ArrivalReport {
  bool stamped = false;      // false: when the poll found them, and the rest is 0
  bool clock_ready = false;  // its rate and offset are known now
  std::uint64_t stamps = 0;
  std::uint64_t unstamped = 0;
  std::uint64_t refused = 0;  // too early or too late to be
  std::uint64_t not_ready = 0;
  std::uint64_t clock_jumps = 0;
  std::uint64_t round_trips = 0;          // measured up to a stamp
  std::uint64_t round_trips_refused = 0;  // that a stamp would have made negative
  double clock_hz = 0;
};

// A capture (port/capture/capture_ring.h): counts since it began.
struct CaptureReport {
  bool running = false;  // false: there is no capture, and nothing here means anything
  std::uint64_t frames = 0;
  std::uint64_t missed = 0;  // frames among these that the reader was too late for
  std::uint64_t ring_bytes = 0;
  std::uint32_t snap = 0;
};

struct NicReport {
  std::string name;
  std::vector<bool> links_up;  // by port, of an emulated NIC
  // For an emulated NIC, over all ports: how long it told its switch to pause, summed over classes;
  // data that it sent in another class than its own; what its transmitters sent, and how long they
  // were busy.
  Picos pausing{0};
  std::uint64_t reclassed_packets = 0;
  std::uint64_t sent_wire_bytes = 0;
  Picos sending{0};
  telemetry::EngineCounters counters;
  PortReport port{};
  ArrivalReport arrivals{};
  LoanReport loans{};
  CaptureReport capture{};
};

struct NicSetReport {
  Picos at{0};
  std::string algorithm;  // of congestion control
  std::vector<NicReport> nics;
  FabricReport fabric;
};

}  // namespace paceline::service
