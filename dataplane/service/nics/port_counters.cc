// `counters` are those of the InfiniBand architecture (vol. 1, 16.1.3.5 and 16.1.4.11: data in
// words of four bytes). `hw_counters` are those of a NIC that scripts and exporters know: names and
// meanings are NVIDIA's ("Understanding mlx5 Linux counters and status parameters"). Only those
// that the engine counts exist as files.
#include "dataplane/service/nics/port_counters.h"

#include <string_view>

#include "dataplane/attach/text.h"
#include "dataplane/wire/packet/parse_error.h"

namespace paceline::service {

namespace {

constexpr std::uint64_t kWord = 4;

std::uint64_t malformed(const telemetry::EngineCounters& c, wire::ParseError reason) {
  return c.malformed[static_cast<std::size_t>(reason)];
}

std::uint64_t all_malformed(const telemetry::EngineCounters& c) {
  std::uint64_t sum = 0;
  for (const std::uint64_t packets : c.malformed) sum += packets;
  return sum;
}

}  // namespace

std::vector<attach::PortCounter> port_counters(const telemetry::EngineCounters& c) {
  const std::uint64_t sent = c.tx_data_packets + c.retransmitted_packets + c.tx_control_packets;
  const struct {
    std::string_view name;
    std::uint64_t value;
  } all[] = {
      {"counters/port_rcv_data", c.rx_wire_bytes / kWord},
      {"counters/port_rcv_errors", all_malformed(c)},
      {"counters/port_rcv_packets", c.rx_packets},
      {"counters/port_xmit_data", c.tx_wire_bytes / kWord},  // without acknowledgements
      {"counters/port_xmit_packets", sent},
      {"hw_counters/duplicate_request", c.duplicates},
      {"hw_counters/implied_nak_seq_err", c.implied_naks},
      {"hw_counters/local_ack_timeout_err", c.timeouts},
      {"hw_counters/np_cnp_sent", c.cnps_sent},
      {"hw_counters/np_ecn_marked_roce_packets", c.rx_ce_packets},
      {"hw_counters/out_of_buffer", c.rnr_sent + c.dropped_no_receive},
      {"hw_counters/out_of_sequence", c.out_of_sequence},
      {"hw_counters/packet_seq_err", c.naks_received},
      {"hw_counters/rnr_nak_retry_err", c.rnr_received},
      {"hw_counters/rp_cnp_handled", c.cnps_received},
      {"hw_counters/rx_icrc_encapsulated", malformed(c, wire::ParseError::bad_icrc)},
  };
  std::vector<attach::PortCounter> out;
  for (const auto& [name, value] : all) {
    attach::PortCounter& counter = out.emplace_back();
    attach::put_text(counter.name, name);
    counter.value = value;
  }
  return out;
}

}  // namespace paceline::service
