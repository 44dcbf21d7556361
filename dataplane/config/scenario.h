// A scenario as typed values: what `paceline emulate FILE` runs once and `paceline ab FILE` runs
// per arm and repetition. Filled by the TOML reader (scenario_reader.h), which reports every error
// with file, line and column; nothing here is clamped silently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::config {

struct EcnAtRate {  // thresholds of ports with links of this rate
  Rate rate{};
  std::uint64_t kmin_bytes = 0;
  std::uint64_t kmax_bytes = 0;
  double pmax = 0;
};

struct EcnConfig {
  bool enabled = true;
  std::uint64_t kmin_bytes = 400'000;
  std::uint64_t kmax_bytes = 1'600'000;
  double pmax = 0.2;  // marking probability at kmax; above kmax everything is marked
  std::vector<EcnAtRate> at_rates;
};

struct PfcConfig {
  bool enabled = true;
  double alpha = 0.125;                    // dynamic threshold: share of the free shared buffer
  std::uint64_t headroom_bytes = 0;        // per port and lossless class; 0 = 3 x rate x delay
  std::uint64_t xon_offset_bytes = 3'000;  // resume at threshold - offset
  std::uint64_t reserve_bytes = 4'096;     // per ingress port and class
};

struct CreditConfig {              // with flow_control = "credit"
  std::uint64_t buffer_bytes = 0;  // per directed link and lossless class; 0: for line rate
  std::uint64_t update_bytes = 0;  // freed between updates; 0: half of the largest packet
};

struct TrimConfig {
  bool enabled = false;
  std::uint64_t threshold_bytes = 64'000;  // queue above which packets lose their payload
  std::uint32_t to_class = 7;              // the class in which the rest of them continues
};

struct NoticeConfig {  // switches notify sources
  bool enabled = false;
  std::uint64_t set_point_bytes = 0;  // queue to stay at; 0: kmin of the port's curve
  double weight = 2;                  // of its growth against its length
  std::uint64_t sample_bytes = 150'000;
};

struct LinkSpec {              // one full-duplex link of an explicit topology
  std::uint32_t a = 0, b = 0;  // node numbers: hosts first, then switches
  Rate rate{};
  Picos delay{};
  double error_rate = 0;  // probability that a packet is corrupted on this link
};

struct FabricConfig {
  // "star" | "leaf_spine" | "fat_tree" | "rail" | "dumbbell" | "file"
  std::string topology = "star";
  std::string topology_file;   // HPCC text format; with topology = "file"
  std::uint32_t hosts = 32;    // NICs; "leaf_spine", "fat_tree", "rail": computed by the reader
  std::uint32_t switches = 1;  // computed by the reader
  Rate rate = rate_from_gbps(100);
  Picos delay = picos_from_micros(1);
  std::uint32_t nics = 1;      // of a server: host = rail * servers + server
  std::uint32_t ports = 1;     // of a NIC
  std::string planes = "own";  // "own": each port index has a fabric of its own | "shared"
  // Regular topologies, see fabric_shape.h for what follows from these.
  std::uint32_t servers = 8;         // "rail"
  std::uint32_t k = 0;               // "fat_tree": the classical one of k-port switches
  std::uint32_t pods = 4;            // "fat_tree"
  std::uint32_t leaves = 4;          // "leaf_spine"; "fat_tree": per pod
  std::uint32_t spines = 4;          // likewise; "rail": per rail
  std::uint32_t cores = 4;           // "fat_tree", "rail"
  std::uint32_t hosts_per_leaf = 8;  // "leaf_spine", "fat_tree", "rail"
  std::uint32_t links_per_pair = 1;  // of leaf and spine; "dumbbell": of its two switches
  Rate uplink_rate{};                // links between leaves and spines; 0: see uplink_rate()
  Rate core_rate{};                  // links between spines and cores; 0: see core_rate()
  Picos uplink_delay = kNever;       // between switches; kNever: as `delay`
  double oversubscription = 0;       // of the topmost tier; 0: rates as given
  std::vector<LinkSpec> links;       // filled for "file", else empty
  std::uint64_t buffer_bytes = 32ULL << 20;  // shared buffer per switch
  EcnConfig ecn;
  PfcConfig pfc;
  std::string flow_control = "pfc";  // "pfc" | "credit" | "none"; the reader keeps pfc.enabled in
                                     // step: true with "pfc" only
  CreditConfig credit;
  bool telemetry = false;  // switches record on data that asks for it (key: int)
  TrimConfig trim;
  NoticeConfig notice;
  std::uint64_t drop_control_ppm = 0;            // loses this share of GRANT/REQUEST/HELLO (tests)
  double loss = 0;                               // random loss of any packet, per link
  double corrupt = 0;                            // likewise; the packet arrives and fails its check
  double duplicate = 0;                          // likewise; a copy follows
  double reorder = 0;                            // likewise; the packet is late
  Picos reorder_delay = picos_from_micros(10);   // by at most this
  std::string load_balance = "ecmp";             // "ecmp" | "spray" | "spray_random"
  std::vector<std::uint32_t> class_weights;      // of the 8 classes; 0 or empty: strict priority
  std::uint32_t ack_class = 7;                   // of ACKs in switches
  std::uint32_t cnp_class = 7;                   // of CNPs in switches
  Picos reroute_delay = picos_from_micros(100);  // from a failure to new next hops
  std::string queued_when_down = "drop";         // "drop" | "keep"
  // 0: count real Ethernet frames plus `frame_overhead_bytes`. Otherwise a packet with payload
  // occupies payload + this, and any other packet `small_packet_bytes` (calibration only).
  std::uint32_t fixed_overhead_bytes = 0;
  std::uint32_t small_packet_bytes = 60;
  std::uint32_t frame_overhead_bytes = 20;  // preamble, start delimiter, inter-frame gap
  std::string subnet = "10.0.0.0/8";        // addresses of emulated hosts derive from it
  Rate nvlink_rate = rate_from_gbps(3600);  // of each GPU, one per NIC, each direction
  Picos nvlink_latency = picos_from_nanos(600);

  // The ends of the fabric: port p of NIC n is number p * hosts + n.
  std::uint64_t endpoints() const { return std::uint64_t{hosts} * ports; }
};

// Something that happens to a link, [[event]].
struct EventConfig {
  Picos at{0};
  std::string link;                  // as written; see link_group.h
  std::vector<std::uint32_t> links;  // the links that this names
  std::string action;      // "down" | "up" | "rate" | "delay" | "loss" | "corrupt" | "duplicate" |
                           // "reorder"
  Rate rate{};             // for "rate"
  Picos delay{};           // for "delay"
  double probability = 0;  // for the last four
  std::string direction = "both";  // or "up" | "down", but for "down" and "up"
  std::string where;               // file:line:column of `link`, for errors found later
};

// Something that is wrong for a while, [[fault]]. fault_kinds.h says what each kind does.
struct FaultConfig {
  std::string kind;
  std::string target;                // as written
  std::uint32_t rank = 0;            // of a kind that has a rank as its target
  std::vector<std::uint32_t> links;  // other kinds: the links that this names
  Picos at{0};
  Picos lasts = kNever;            // kNever: to the end
  double severity = 0;             // as given, or the kind's usual one; 0: the kind has none
  std::string direction = "both";  // or "up" | "down", of kinds that can be of one
  std::uint64_t seed = 0;          // of what chance decides in it; 0: follows from the run's
  std::string where;               // file:line:column of `target`, for errors found later

  Picos until() const { return saturating_add(at, lasts); }
};

// Hosts that probe each other: packets' delays, and how their clocks differ.
struct ProbingConfig {
  bool enabled = false;
  double share = 0.01;  // of a link, for probes and answers
  std::uint32_t paths = 1;
  Picos clock_offset{0};       // clocks begin up to so far off,
  double clock_drift_ppm = 0;  // and run at most this much too fast or too slow
};

struct TransportConfig {
  std::uint32_t payload_bytes = 4096;  // path MTU; 256..4096 by powers of two, or any
                                       // value 64..4096 with `calibration = true`
  bool calibration = false;
  std::uint32_t ack_every = 1;  // packets per ACK; the last of a message is always ACKed
  Picos retransmit_timeout = picos_from_micros(4000);  // above the drain time of a full buffer
  std::uint32_t retry_count = 7;
  std::string reliability = "go_back_n";  // "go_back_n" | "selective"
  std::string multipath = "none";         // "none" | "packet" | "chunk"; needs "selective"
  std::uint32_t paths = 64;               // source ports of a connection
  std::string source_ports = "hash";      // of a connection: by its number | "planned"
  std::string planes = "spray";           // "spray" | "hash" | "pinned"; of NICs with several ports
  std::uint32_t path_run = 16;            // "chunk": packets that take the same path
  std::uint32_t window_packets = 512;     // "selective": a power of two
  std::uint32_t reorder_packets = 128;    // "selective": held until their turn, per connection
  bool place_in_order = false;            // "selective": WRITEs wait for their turn, too
  Picos cnp_interval = picos_from_micros(50);  // per flow, at the notification point
  bool cnp_in_ack = false;         // calibration only: BECN bit of the ACK instead of CNPs
  std::string peers = "paceline";  // "paceline" | "roce" | "discover"
  std::vector<std::uint32_t> foreign_hosts;  // these hosts never speak the control protocol
};

struct ParamValue {
  std::string name;
  double value = 0;
};

struct CcConfig {
  std::string algorithm = "dcqcn";
  std::string profile = "default";
  std::string fallback = "dcqcn";  // reactive algorithm of a proactive one, for foreign peers
  std::string fallback_profile = "default";
  std::vector<ParamValue> params;  // overrides, checked against the ParamSpec table
};

// Training of a model by several kinds of parallelism.
struct TrainingConfig {
  // A known model, or the sizes of one
  std::string name;
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // 0: as many as heads
  std::uint32_t ffn = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t experts = 0;  // of a layer; 0: none
  std::uint32_t top_k = 0;
  std::uint32_t expert_layers = 0;  // 0: all
  std::uint32_t expert_ffn = 0;     // 0: as ffn
  // A step
  std::uint32_t sequence = 4096;
  std::uint32_t micro_batch = 1;
  std::uint32_t micro_batches = 1;
  bool causal = true;
  double flops = 400e12;  // sustained, of a rank
  // Degrees
  std::uint32_t tp = 1;
  std::uint32_t cp = 1;
  std::uint32_t dp = 1;
  std::uint32_t pp = 1;
  std::uint32_t ep = 1;
  std::uint32_t virtual_stages = 1;
  // What is sent.
  std::uint32_t zero = 0;
  bool sequence_parallel = false;
  bool gather_again = false;  // sequence_parallel: inputs, in the backward pass
  bool free_weights = false;  // zero = 3: weights are gathered for every micro-batch
  std::uint64_t bucket_bytes = 25'000'000;
  std::uint32_t gradient_bytes = 2;
  std::uint32_t merge_layers = 1;
};

// Requests of a trace of an inference service.
struct InferenceConfig {
  std::uint32_t prefill_nics = 0;  // the first ranks; 0: half of them. The others decode
  std::uint32_t layers = 80;
  std::uint64_t kv_bytes = 4096;  // keys and values of a token in a layer
  std::uint32_t tokens_per_second = 2500;
  std::uint32_t layers_per_transfer = 1;
  double time_scale = 1;       // times of arrival are divided by this
  std::uint32_t requests = 0;  // the first ones of the trace; 0: all
  bool reuse = true;
};

// A job: ranks that compute and communicate, one rank a NIC.
struct JobConfig {
  // Format of the file: "simai" | "goal" | "chakra" | "inference"; or "model"
  std::string format = "collective";
  TrainingConfig model;
  InferenceConfig inference;
  std::string file;
  std::string groups_file;  // chakra
  // collective
  std::string operation = "all_reduce";
  std::uint64_t bytes = 64 << 20;  // of a rank's whole buffer
  std::uint32_t iterations = 1;
  Picos compute{0};  // between iterations
  // Computing
  double compute_scale = 1;
  double jitter = 0;  // every time of computing is multiplied by exp(jitter * z), z standard normal
  std::uint32_t straggler = 0;  // the rank whose computing takes
  double straggler_factor = 1;  // so many times as long
  // Which schedule, by operation; "": the default of the operation
  std::string all_reduce;
  std::string reduce_scatter;
  std::string all_gather;
  std::string all_to_all;
  std::string broadcast;
  std::string reduce;
  std::string schedule_file;            // an algorithm in MSCCL XML, for its operation and ranks
  std::uint32_t chunk_bytes = 1 << 20;  // the largest message of a collective
  std::uint32_t channels = 1;
  std::uint32_t window = 8;       // parts of a channel that a rank has in flight
  std::uint32_t queue_pairs = 1;  // of a pair of ranks, for each channel
  bool clear_to_send = false;
  Picos step_overhead{0};         // before each message of a collective
  std::uint32_t aggregation = 0;  // pat: blocks in one far message; 0: all
  std::uint32_t peers = 0;        // all_to_all "window": peers in flight; 0: all
  double skew = 0;  // all_to_all: weight of a receiver exp(skew * z), z standard normal
};

// Traffic of storage besides a job.
struct BackgroundConfig {
  std::string kind = "none";              // "none" | "checkpoint": ranks write | "dataset": read
  std::uint64_t bytes = 1 << 30;          // of a rank
  std::uint32_t storage_nics = 8;         // the last ranks
  std::uint64_t message_bytes = 4 << 20;  // to the storage NICs in turn
  std::uint32_t outstanding = 1;          // between a rank and a storage NIC
  std::uint32_t traffic_class = 1;
  Picos start{0};
};

struct WorkloadConfig {
  // "incast" | "all_to_all" | "open_loop" | "ring_all_reduce" | "permutation" | "flows" | "htsim" |
  // "job"
  std::string kind = "incast";
  // incast: fan_in senders to host `receiver`; message_bytes each
  std::uint32_t fan_in = 16;
  std::uint32_t receiver = 0;
  std::uint64_t message_bytes = 10'000'000;  // incast, permutation: per flow; all_to_all: mean pair
  Picos start_jitter{0};                     // starts uniform in [0, start_jitter]
  // permutation
  std::uint32_t shift = 0;  // host h sends to h + shift, from the last on to the first; 0: drawn
  // all_to_all
  double skew = 0;  // destination weight exp(skew * z), z standard normal
  // open_loop
  std::string cdf = "websearch";  // built-in name, or "file"
  std::string cdf_file;
  double load = 0.8;                       // of each host's link
  Picos window = picos_from_micros(1000);  // arrivals are generated in [0, window)
  double incast_load = 0;                  // incasts besides, of fan_in x message_bytes
  // ring_all_reduce
  std::uint64_t all_reduce_bytes = 0;   // gradient bytes per rank; 0 with `model` set
  std::string model;                    // "llama3-70b"
  double scale = 1.0;                   // bytes are divided by this
  std::uint32_t chunk_bytes = 1 << 20;  // pipelining unit within a ring step
  std::uint32_t buckets_in_flight = 4;  // all-reduces of successive buckets a rank lets overlap
  // flows
  std::string flows_file;  // HPCC flow.txt
  // htsim
  std::string matrix_file;
  std::string start_unit;  // "ps" | "us" | "": see tools/workload/files/htsim_matrix.h
  JobConfig job;
  BackgroundConfig background;
  // Which NIC each rank has: "packed" | "spread" | "random" | "file"
  std::string placement = "packed";
  std::string placement_file;
  bool per_rail = false;  // each rail has the workload for itself, over one NIC of each server
  bool pxn = false;       // to another rail: by NVLink to the NIC of that rail, then along it
};

struct Scenario {
  std::uint32_t schema = 1;
  std::string name = "scenario";
  std::uint64_t seed = 1;
  Picos duration = kNever;     // stop then; kNever: until every message completed
  std::uint64_t max_hops = 0;  // abort with an error beyond this many; 0 = no limit
  FabricConfig fabric;
  TransportConfig transport;
  CcConfig cc;
  WorkloadConfig workload;
  ProbingConfig probing;
  std::vector<EventConfig> events;
  std::vector<FaultConfig> faults;
};

// Acknowledgements bring back what switches record.
inline bool has_telemetry(const Scenario& scenario) {
  return scenario.fabric.telemetry && scenario.transport.reliability == "selective" &&
         scenario.transport.peers != "roce";
}

// All packets of a connection take the path that follows from its source port.
inline bool has_one_path(const Scenario& scenario) {
  return scenario.transport.multipath == "none" && scenario.fabric.load_balance == "ecmp" &&
         scenario.fabric.ports == 1;
}

struct Arm {
  std::string name;
  CcConfig cc;
};

struct Experiment {
  std::uint32_t schema = 1;
  std::string name = "experiment";
  std::uint64_t seed = 1;
  std::uint32_t repetitions = 12;
  double confidence = 0.95;
  std::vector<Arm> arms;            // arms[0] is the baseline
  std::vector<Scenario> scenarios;  // each runs under every arm with the same seed per repetition
};

}  // namespace paceline::config
