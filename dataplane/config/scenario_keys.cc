#include "dataplane/config/scenario_keys.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "dataplane/config/diagnostics.h"
#include "dataplane/config/quantity.h"

namespace paceline::config {

namespace {

constexpr double kNs = 1e3, kUs = 1e6, kSecond = 1e12;
constexpr double kMb = 1e6, kTb = 1e12;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kHostLimit = 100'000;

constexpr auto kKinds = std::to_array<std::string_view>(
    {"incast", "all_to_all", "open_loop", "ring_all_reduce", "permutation", "flows"});
constexpr auto kTopologies = std::to_array<std::string_view>({"star", "file"});
constexpr auto kPeers = std::to_array<std::string_view>({"paceline", "roce", "discover"});
constexpr auto kCdfs = std::to_array<std::string_view>({"websearch", "fb_hadoop", "file"});
constexpr auto kModels = std::to_array<std::string_view>({"llama3-70b"});
constexpr auto kCcKeys = std::to_array<std::string_view>(
    {"algorithm", "profile", "fallback", "fallback_profile", "params"});

// The field of a row: a function from a scenario to the address of one member.
#define PACELINE_FIELD(member) [](Scenario& s) -> Field { return &s.member; }

constexpr auto kKeys = std::to_array<KeySpec>({
    {.path = "name",
     .field = PACELINE_FIELD(name),
     .meaning =
         "Name in tables, results and `--set scenario.NAME.key=value`: letters, digits, - and _."},
    {.path = "seed",
     .field = PACELINE_FIELD(seed),
     .min = 0,
     .max = 9.2e18,
     .meaning = "Seed of everything random. In an experiment it is set once, at the top."},
    {.path = "duration",
     .field = PACELINE_FIELD(duration),
     .min = kNs,
     .max = 1000 * kSecond,
     .meaning = "Virtual time at which the run stops; by default when every message completed."},
    {.path = "max_hops",
     .field = PACELINE_FIELD(max_hops),
     .min = 0,
     .max = 1e15,
     .meaning = "The run fails beyond this many packet hops (link transmissions); 0 = no limit."},

    {.path = "fabric.topology",
     .form = Form::choice,
     .field = PACELINE_FIELD(fabric.topology),
     .choices = kTopologies,
     .meaning =
         "\"star\": every host on one switch. \"file\": read `topology_file`; hosts, rates and "
         "delays then come from there. Implied by `topology_file`."},
    {.path = "fabric.topology_file",
     .form = Form::path,
     .field = PACELINE_FIELD(fabric.topology_file),
     .meaning = "Topology in the text format of the HPCC simulator."},
    {.path = "fabric.hosts",
     .field = PACELINE_FIELD(fabric.hosts),
     .min = 2,
     .max = kHostLimit,
     .meaning = "Hosts of the star, one port each."},
    {.path = "fabric.rate",
     .field = PACELINE_FIELD(fabric.rate),
     .min = kMb,
     .max = 3.2 * kTb,
     .meaning = "Rate of every link of the star."},
    {.path = "fabric.delay",
     .field = PACELINE_FIELD(fabric.delay),
     .min = kNs,
     .max = kSecond,
     .meaning = "Propagation delay of every link of the star, one way."},
    {.path = "fabric.buffer",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.buffer_bytes),
     .min = 65536,
     .max = 64 * kGiB,
     .meaning = "Shared packet buffer of each switch."},
    {.path = "fabric.drop_control_ppm",
     .field = PACELINE_FIELD(fabric.drop_control_ppm),
     .min = 0,
     .max = 1e6,
     .meaning = "Loses this share (parts per million) of HELLO, REQUEST, GRANT and PATH."},
    {.path = "fabric.loss",
     .field = PACELINE_FIELD(fabric.loss),
     .min = 0,
     .max = 1,
     .meaning = "Probability that a link loses a packet, whatever it is."},
    {.path = "fabric.fixed_overhead_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.fixed_overhead_bytes),
     .min = 0,
     .max = 1024,
     .meaning = "Calibration: a packet with payload occupies payload + this on a link; 0 = the "
                "real frame."},
    {.path = "fabric.small_packet_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.small_packet_bytes),
     .min = 1,
     .max = 4096,
     .meaning = "Calibration: size of a packet without payload, with `fixed_overhead_bytes`."},
    {.path = "fabric.frame_overhead_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.frame_overhead_bytes),
     .min = 0,
     .max = 256,
     .meaning = "Preamble, start delimiter and inter-frame gap of a real frame."},
    {.path = "fabric.subnet",
     .field = PACELINE_FIELD(fabric.subnet),
     .meaning = "IPv4 network from which the addresses of emulated hosts derive."},
    {.path = "fabric.ecn.enabled",
     .field = PACELINE_FIELD(fabric.ecn.enabled),
     .meaning = "Switches mark CE at dequeue, by the length of the egress queue."},
    {.path = "fabric.ecn.kmin",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.ecn.kmin_bytes),
     .min = 0,
     .max = 64 * kGiB,
     .meaning = "Queue below which nothing is marked."},
    {.path = "fabric.ecn.kmax",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.ecn.kmax_bytes),
     .min = 0,
     .max = 64 * kGiB,
     .meaning = "Queue above which everything is marked; not below `kmin`."},
    {.path = "fabric.ecn.pmax",
     .field = PACELINE_FIELD(fabric.ecn.pmax),
     .min = 0,
     .max = 1,
     .meaning = "Marking probability at `kmax`; linear from 0 at `kmin`."},
    {.path = "fabric.pfc.enabled",
     .field = PACELINE_FIELD(fabric.pfc.enabled),
     .meaning = "Priority flow control: a switch pauses the sender of a lossless class."},
    {.path = "fabric.pfc.alpha",
     .field = PACELINE_FIELD(fabric.pfc.alpha),
     .min = 0,
     .max = 64,
     .meaning = "Dynamic threshold: an ingress may use this share of the free shared buffer.",
     .open_min = true},
    {.path = "fabric.pfc.headroom",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.pfc.headroom_bytes),
     .min = 0,
     .max = 64 * kGiB,
     .meaning = "Headroom per port and lossless class; 0 = 3 x rate x delay."},
    {.path = "fabric.pfc.xon_offset",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.pfc.xon_offset_bytes),
     .min = 0,
     .max = 64 * kGiB,
     .meaning = "A paused class resumes this far below its threshold."},
    {.path = "fabric.pfc.reserve",
     .form = Form::bytes,
     .field = PACELINE_FIELD(fabric.pfc.reserve_bytes),
     .min = 0,
     .max = 64 * kGiB,
     .meaning = "Buffer reserved per ingress port and class."},

    {.path = "transport.payload_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(transport.payload_bytes),
     .min = 64,
     .max = 4096,
     .meaning = "Path MTU: payload of a full packet. 256, 512, 1024, 2048 or 4096; any value with "
                "`calibration`."},
    {.path = "transport.calibration",
     .field = PACELINE_FIELD(transport.calibration),
     .meaning = "Allows what real RoCEv2 does not, to compare with other simulators."},
    {.path = "transport.ack_every",
     .field = PACELINE_FIELD(transport.ack_every),
     .min = 1,
     .max = 1024,
     .meaning = "Packets per ACK; the last of a message is always acknowledged."},
    {.path = "transport.retransmit_timeout",
     .field = PACELINE_FIELD(transport.retransmit_timeout),
     .min = kUs,
     .max = 100 * kSecond,
     .meaning = "Without progress for this long, go back."},
    {.path = "transport.retry_count",
     .field = PACELINE_FIELD(transport.retry_count),
     .min = 0,
     .max = 7,
     .meaning = "Timeouts in a row before the queue pair fails (3 bits in the specification)."},
    {.path = "transport.cnp_interval",
     .field = PACELINE_FIELD(transport.cnp_interval),
     .min = 0,
     .max = kSecond,
     .meaning = "At most one CNP per flow in this time."},
    {.path = "transport.cnp_in_ack",
     .field = PACELINE_FIELD(transport.cnp_in_ack),
     .meaning = "Calibration: the BECN bit of ACKs instead of CNPs."},
    {.path = "transport.peers",
     .form = Form::choice,
     .field = PACELINE_FIELD(transport.peers),
     .choices = kPeers,
     .meaning =
         "Whether hosts speak the control protocol: all, none, or to be found out by HELLO."},
    {.path = "transport.foreign_hosts",
     .field = PACELINE_FIELD(transport.foreign_hosts),
     .min = 0,
     .max = kHostLimit - 1,
     .meaning = "Hosts that never speak the control protocol."},

    {.path = "workload.kind",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.kind),
     .choices = kKinds,
     .meaning = "The generator. Implied by `flows_file` when absent."},
    {.path = "workload.fan_in",
     .field = PACELINE_FIELD(workload.fan_in),
     .min = 1,
     .max = kHostLimit - 1,
     .used_by = "incast",
     .meaning = "Senders; at most hosts - 1."},
    {.path = "workload.receiver",
     .field = PACELINE_FIELD(workload.receiver),
     .min = 0,
     .max = kHostLimit - 1,
     .used_by = "incast",
     .meaning = "The host they send to."},
    {.path = "workload.message_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.message_bytes),
     .min = 1,
     .max = 1e15,
     .used_by = "incast all_to_all permutation",
     .meaning = "Bytes of each message; all_to_all: mean over the pairs."},
    {.path = "workload.start_jitter",
     .field = PACELINE_FIELD(workload.start_jitter),
     .min = 0,
     .max = 1000 * kSecond,
     .used_by = "incast all_to_all permutation ring_all_reduce",
     .meaning = "Each host begins at a time uniform in [0, start_jitter]."},
    {.path = "workload.skew",
     .field = PACELINE_FIELD(workload.skew),
     .min = 0,
     .max = 8,
     .used_by = "all_to_all",
     .meaning =
         "Weight of a destination = exp(skew * z), z standard normal; every host sends the same "
         "total. 0 = uniform."},
    {.path = "workload.cdf",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.cdf),
     .choices = kCdfs,
     .used_by = "open_loop",
     .meaning = "Flow sizes. \"file\" is implied by `cdf_file`."},
    {.path = "workload.cdf_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.cdf_file),
     .used_by = "open_loop",
     .meaning = "Lines of `size share`, ending at 1 or at 100."},
    {.path = "workload.load",
     .field = PACELINE_FIELD(workload.load),
     .min = 0,
     .max = 1,
     .used_by = "open_loop",
     .meaning =
         "Payload bytes each host offers, as a share of its link rate (headers come on top).",
     .open_min = true},
    {.path = "workload.window",
     .field = PACELINE_FIELD(workload.window),
     .min = kNs,
     .max = 1000 * kSecond,
     .used_by = "open_loop",
     .meaning = "Arrivals happen in [0, window)."},
    {.path = "workload.all_reduce_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.all_reduce_bytes),
     .min = 0,
     .max = 1e15,
     .used_by = "ring_all_reduce",
     .meaning = "Gradient bytes per rank; either this or `model`."},
    {.path = "workload.model",
     .form = Form::choice,
     .field = PACELINE_FIELD(workload.model),
     .choices = kModels,
     .used_by = "ring_all_reduce",
     .meaning =
         "Gradient buckets with the shape of this model, in backward order, 2 bytes a parameter."},
    {.path = "workload.scale",
     .field = PACELINE_FIELD(workload.scale),
     .min = 1,
     .max = 1e12,
     .used_by = "ring_all_reduce",
     .meaning = "Bytes are divided by this."},
    {.path = "workload.chunk_bytes",
     .form = Form::bytes,
     .field = PACELINE_FIELD(workload.chunk_bytes),
     .min = 1,
     .max = kGiB,
     .used_by = "ring_all_reduce",
     .meaning =
         "Largest message of a ring step; chunks are forwarded independently of each other."},
    {.path = "workload.buckets_in_flight",
     .field = PACELINE_FIELD(workload.buckets_in_flight),
     .min = 1,
     .max = 1024,
     .used_by = "ring_all_reduce",
     .meaning = "All-reduces of successive gradient buckets that a rank lets overlap."},
    {.path = "workload.flows_file",
     .form = Form::path,
     .field = PACELINE_FIELD(workload.flows_file),
     .used_by = "flows",
     .meaning = "Flow list in the text format of the HPCC simulator."},
});

#undef PACELINE_FIELD

constexpr auto kExperimentKeys = std::to_array<KeySpec>({
    {.path = "name", .meaning = "Name of the experiment."},
    {.path = "seed",
     .min = 0,
     .max = 9.2e18,
     .meaning =
         "Every repetition derives its seed from this one; all arms of a repetition share it."},
    {.path = "repetitions",
     .min = 2,
     .max = 100'000,
     .meaning = "Paired replays of each scenario: the unit of the statistics."},
    {.path = "confidence",
     .min = 0.5,
     .max = 0.9999,
     .meaning = "Level of the confidence intervals."},
});

// A size as one would write it for this key: small ones of *_bytes keys are bare integers.
std::string size_text(const KeySpec& key, std::uint64_t bytes) {
  return key.path.ends_with("_bytes") && bytes < 10'000 ? fmt::format("{}", bytes)
                                                        : format_bytes(bytes);
}

std::string base_text(const KeySpec& key, const Field& field, double value) {
  const auto whole = static_cast<std::uint64_t>(value);
  if (std::holds_alternative<Picos*>(field)) return format_time({static_cast<std::int64_t>(value)});
  if (std::holds_alternative<Rate*>(field)) return format_rate({whole});
  if (key.form == Form::bytes) return size_text(key, whole);
  if (std::holds_alternative<double*>(field)) return fmt::format("{}", value);
  return fmt::format("{}", whole);
}

}  // namespace

std::span<const KeySpec> scenario_keys() { return kKeys; }
std::span<const std::string_view> cc_keys() { return kCcKeys; }
std::span<const std::string_view> workload_kinds() { return kKinds; }

std::span<const KeySpec> experiment_keys() { return kExperimentKeys; }

Field experiment_field(Experiment& experiment, std::string_view name) {
  if (name == "seed") return &experiment.seed;
  if (name == "repetitions") return &experiment.repetitions;
  if (name == "confidence") return &experiment.confidence;
  return &experiment.name;
}

std::string allowed_text(const KeySpec& key, const Field& field) {
  if (key.form == Form::choice) return list_names(key.choices);
  if (key.min == 0 && key.max == 0) return "";
  return fmt::format("{}{} .. {}]", key.open_min ? "(" : "[", base_text(key, field, key.min),
                     base_text(key, field, key.max));
}

std::string_view type_text(const KeySpec& key, const Field& field) {
  if (key.form == Form::bytes) return key.path.ends_with("_bytes") ? "size or integer" : "size";
  if (key.form == Form::choice) return "choice";
  if (key.form == Form::path) return "file";
  if (std::holds_alternative<bool*>(field)) return "boolean";
  if (std::holds_alternative<double*>(field)) return "number";
  if (std::holds_alternative<Picos*>(field)) return "time";
  if (std::holds_alternative<Rate*>(field)) return "rate";
  if (std::holds_alternative<std::string*>(field)) return "text";
  if (std::holds_alternative<std::vector<std::uint32_t>*>(field)) return "array of integers";
  return "integer";
}

std::string value_text(const KeySpec& key, const Field& field) {
  const bool bytes = key.form == Form::bytes;
  return std::visit(
      [&](auto* p) -> std::string {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, bool>) {
          return *p ? "true" : "false";
        } else if constexpr (std::is_same_v<T, Picos>) {
          return *p == kNever ? "none" : fmt::format("\"{}\"", format_time(*p));
        } else if constexpr (std::is_same_v<T, Rate>) {
          return fmt::format("\"{}\"", format_rate(*p));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return p->empty() ? "none" : fmt::format("\"{}\"", *p);
        } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
          return "[]";
        } else if constexpr (std::is_same_v<T, double>) {
          return fmt::format("{}", *p);
        } else {
          if (!bytes) return fmt::format("{}", *p);
          const std::string text = size_text(key, *p);
          return text.back() == 'B' ? fmt::format("\"{}\"", text) : text;
        }
      },
      field);
}

}  // namespace paceline::config
