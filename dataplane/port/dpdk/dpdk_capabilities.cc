#include "dataplane/port/dpdk/dpdk_capabilities.h"

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "dataplane/port/dpdk/dpdk_pause.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

// Whether a rule that steers RoCEv2 to the first queue would be taken. The driver judges; nothing
// is created.
bool takes_flow_rule(std::uint16_t port_id, std::string& refusal) {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_udp udp{};
  rte_flow_item_udp mask{};
  udp.hdr.dst_port = rte_cpu_to_be_16(wire::kRoceUdpPort);
  mask.hdr.dst_port = 0xFFFF;
  std::array<rte_flow_item, 4> pattern{};
  pattern[0].type = RTE_FLOW_ITEM_TYPE_ETH;
  pattern[1].type = RTE_FLOW_ITEM_TYPE_IPV4;
  pattern[2].type = RTE_FLOW_ITEM_TYPE_UDP;
  pattern[2].spec = &udp;
  pattern[2].mask = &mask;
  pattern[3].type = RTE_FLOW_ITEM_TYPE_END;
  rte_flow_action_queue queue{};
  std::array<rte_flow_action, 2> actions{};
  actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
  actions[0].conf = &queue;
  actions[1].type = RTE_FLOW_ACTION_TYPE_END;
  rte_flow_error error{};
  const int result =
      rte_flow_validate(port_id, &attributes, pattern.data(), actions.data(), &error);
  if (result == 0) return true;
  refusal = result == -ENOSYS || error.message == nullptr ? std::strerror(-result) : error.message;
  return false;
}

// Drivers that have copied a frame out when the call returns (DPDK 22.11).
constexpr std::string_view kSendInCall[] = {"net_memif", "net_af_packet", "net_tap", "net_pcap",
                                            "net_vhost"};

// By PauseMode.
constexpr std::string_view kPauseTexts[] = {"neither heeded nor sent", "heeded, not sent",
                                            "sent, not heeded", "heeded and sent"};

}  // namespace

SendPath send_path_of(std::string_view driver, std::string_view device, bool multi_segment,
                      std::string& refusal) {
  refusal.clear();
  if (!multi_segment) {
    refusal = "the device takes one segment a frame";
  } else if (driver == "net_ring") {
    return SendPath::handed_on;
  } else if (std::find(std::begin(kSendInCall), std::end(kSendInCall), driver) ==
             std::end(kSendInCall)) {
    refusal = "driver " + std::string(driver) +
              " keeps payloads after the call, or needs them registered";
  } else if (device.find("zero-copy=yes") != std::string_view::npos) {
    refusal = "zero-copy=yes lets the peer read it later";
  } else {
    return SendPath::in_call;
  }
  return SendPath::copied;
}

DpdkCapabilities probe_capabilities(std::uint16_t port_id) {
  DpdkCapabilities c;
  c.port_id = port_id;
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port_id, &info) != 0) return c;
  std::array<char, RTE_ETH_NAME_MAX_LEN> name{};
  if (rte_eth_dev_get_name_by_port(port_id, name.data()) == 0) c.device = name.data();
  if (info.driver_name != nullptr) c.driver = info.driver_name;
  c.socket = rte_eth_dev_socket_id(port_id);
  rte_ether_addr mac{};
  if (rte_eth_macaddr_get(port_id, &mac) == 0) {
    std::memcpy(c.mac.bytes.data(), mac.addr_bytes, sizeof mac.addr_bytes);
  }
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(port_id, &link) == 0 &&
      link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) {
    c.link_mbps = link.link_speed;
  }
  rte_eth_dev_get_mtu(port_id, &c.ip_mtu);
  c.largest_ip_mtu = info.max_mtu;
  c.largest_frame = info.max_rx_pktlen;
  c.rx_queues = info.max_rx_queues;
  c.tx_queues = info.max_tx_queues;
  c.rx_ip_checksum = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
  c.tx_ip_checksum = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
  c.rss = info.max_rx_queues > 1 && (info.flow_type_rss_offloads & RTE_ETH_RSS_UDP) != 0;
  c.flow_rules = takes_flow_rule(port_id, c.flow_refusal);
  c.rx_timestamps = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
  c.rx_scatter = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
  c.tx_multi_segment = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  c.tx_fast_free = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
  c.link_interrupt = info.dev_flags != nullptr && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
  c.pause = probe_pause(port_id);
  c.virtual_addresses = rte_eal_iova_mode() == RTE_IOVA_VA;
  return c;
}

std::string DpdkCapabilities::summary() const {
  std::string text = device + ": driver " + driver + ", queues " + std::to_string(rx_queues) + "/" +
                     std::to_string(tx_queues) + ", IP MTU " + std::to_string(ip_mtu);
  text += link_mbps == 0 ? ", link speed unknown" : ", link " + std::to_string(link_mbps) + " Mb/s";
  text += "; received payload is read in place, sent payload ";
  switch (send_path) {
    case SendPath::copied:
      text += "copied once into the packet (" + send_refusal + ")";
      break;
    case SendPath::in_call:
      text += "read from registered memory by the driver, which copies it";
      break;
    case SendPath::handed_on:
      text += "read from registered memory by the receiver";
      break;
  }
  if (arrival_times) text += "; packets arrive when the device's clock says";
  if (pause.offered) {
    text += "; pause frames ";
    text += kPauseTexts[static_cast<std::size_t>(pause.mode)];
  }
  if (pause.priority_classes != 0) {
    text += "; offers pauses of " + std::to_string(pause.priority_classes) +
            " priorities, which are not used";
  }
  return text;
}

std::vector<std::string> DpdkCapabilities::missing() const {
  std::vector<std::string> lines;
  const auto lacks = [&](bool there, const std::string& text) {
    if (!there) lines.push_back(device + ": " + text);
  };
  lacks(rx_ip_checksum, "no IPv4 checksum on receive: verified in software");
  lacks(rss, "no RSS over UDP: one queue receives everything");
  lacks(flow_rules, "no flow rules (" + flow_refusal + "): queue pairs are steered in software");
  lacks(arrival_times,
        "packets arrive when a poll finds them, by the processor's clock: " + stamp_refusal);
  lacks(pause.offered, "no say in pause frames (IEEE 802.3x: " + pause.refusal +
                           "): what the link does about them is not known here");
  return lines;
}

}  // namespace paceline
