#include <array>

#include "dataplane/config/keys/scenario_key_parts.h"

namespace paceline::config {

namespace {

using namespace key_unit;

constexpr auto kPeers = std::to_array<std::string_view>({"paceline", "roce", "discover"});
constexpr auto kReliabilities = std::to_array<std::string_view>({"go_back_n", "selective"});
constexpr auto kMultipaths = std::to_array<std::string_view>({"none", "packet", "chunk"});

constexpr auto kSourcePorts = std::to_array<std::string_view>({"hash", "planned"});
constexpr auto kPlaneUses = std::to_array<std::string_view>({"spray", "hash", "pinned"});

constexpr auto kTransportKeys = std::to_array<KeySpec>({
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
    {.path = "transport.reliability",
     .form = Form::choice,
     .field = PACELINE_FIELD(transport.reliability),
     .choices = kReliabilities,
     .meaning = "Repair of losses: everything from the lost packet on, or (with peers that speak "
                "the control protocol) only what was lost."},
    {.path = "transport.multipath",
     .form = Form::choice,
     .field = PACELINE_FIELD(transport.multipath),
     .choices = kMultipaths,
     .meaning = "Paths (UDP source ports) of a connection: one, the next for every packet, or for "
                "every `path_run` packets. Needs `reliability = \"selective\"`."},
    {.path = "transport.paths",
     .field = PACELINE_FIELD(transport.paths),
     .min = 2,
     .max = 64,
     .meaning = "Paths of a connection with `multipath`."},
    {.path = "transport.path_run",
     .field = PACELINE_FIELD(transport.path_run),
     .min = 1,
     .max = 4096,
     .meaning = "`multipath = \"chunk\"`: packets that take the same path in a row."},
    {.path = "transport.source_ports",
     .form = Form::choice,
     .field = PACELINE_FIELD(transport.source_ports),
     .choices = kSourcePorts,
     .meaning = "By a hash, as programs get it, or \"planned\": links between switches share the "
                "bytes evenly."},
    {.path = "transport.planes",
     .form = Form::choice,
     .field = PACELINE_FIELD(transport.planes),
     .choices = kPlaneUses,
     .meaning =
         "With several `fabric.ports` a connection uses all in turn (default and allowed with "
         "`reliability = \"selective\"`), one by a hash (else the default), or one dealt out."},
    {.path = "transport.window_packets",
     .field = PACELINE_FIELD(transport.window_packets),
     .min = 64,
     .max = 4096,
     .meaning = "Selective repeat: the most packets in flight, a power of two."},
    {.path = "transport.reorder_packets",
     .field = PACELINE_FIELD(transport.reorder_packets),
     .min = 1,
     .max = 4096,
     .meaning = "Selective repeat: packets that a receiver holds per connection. WRITEs are placed "
                "at once."},
    {.path = "transport.place_in_order",
     .field = PACELINE_FIELD(transport.place_in_order),
     .meaning =
         "Selective repeat: WRITEs are held, too. For programs that poll memory for the last "
         "byte of a WRITE."},
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
});

}  // namespace

std::span<const KeySpec> transport_keys() { return kTransportKeys; }

}  // namespace paceline::config
