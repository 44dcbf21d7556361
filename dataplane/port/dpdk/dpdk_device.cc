#include "dataplane/port/dpdk/dpdk_device.h"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

// The most that a RoCE packet adds to its payload above Ethernet: IPv6, UDP, BTH, RETH with
// immediate, ICRC.
constexpr std::uint32_t kLayersAbove =
    wire::kIpv6Bytes + wire::kUdpBytes + wire::kBthBytes + 20 + wire::kIcrcBytes;
constexpr std::uint32_t kEthernetAround = 14 + 4 + 4;  // header, tag, frame check sequence

// Drivers that report 1518 bytes although an argument decides what they carry. They silently cut or
// drop longer frames.
struct SizeArgument {
  std::string_view driver;
  std::string_view key;
  std::uint32_t otherwise;  // when it is not given
  std::uint32_t overhead;   // of this, not for the frame
};
constexpr SizeArgument kSizeArguments[] = {
    {"net_memif", "bsize", 2048, 0},
    {"net_af_packet", "framesz", 2048, 32},
};

// Drivers that unmap memory on the interrupt thread (dpdk_gate.h), and leave something behind for
// it when they close.
constexpr std::string_view kNeedsGate[] = {"net_memif"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const SizeArgument* size_argument(std::string_view driver) {
  for (const SizeArgument& argument : kSizeArguments) {
    if (argument.driver == driver) return &argument;
  }
  return nullptr;
}

// Whether a kernel interface is up and has a carrier.
bool interface_runs(const std::string& name) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;  // this cannot be known
  ifreq request{};
  name.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
  const bool asked = ::ioctl(socket, SIOCGIFFLAGS, &request) == 0;
  ::close(socket);
  constexpr int kRuns = IFF_UP | IFF_RUNNING;
  return asked && (request.ifr_flags & kRuns) == kRuns;
}

// The value of "key=value" among a device's arguments.
std::uint32_t argument_value(std::string_view device, const SizeArgument& argument) {
  std::uint32_t value = argument.otherwise;
  while (!device.empty()) {
    const std::string_view one = device.substr(0, device.find(','));
    device.remove_prefix(std::min(device.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || one.substr(0, equals) != argument.key) continue;
    std::from_chars(one.data() + equals + 1, one.data() + one.size(), value);
  }
  return value;
}

// The MTU of the kernel's interface under a device; nothing if it has none.
std::optional<std::uint32_t> kernel_mtu(unsigned index, std::string& name) {
  std::array<char, IF_NAMESIZE> text{};
  if (index == 0 || if_indextoname(index, text.data()) == nullptr) return std::nullopt;
  name = text.data();
  // Asks by a socket: files of /sys may show another network namespace.
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  ifreq request{};
  std::copy(text.begin(), text.end(), request.ifr_name);
  const bool known = ioctl(fd, SIOCGIFMTU, &request) == 0;
  close(fd);
  if (!known) return std::nullopt;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

std::string text_of(int error) { return rte_strerror(error < 0 ? -error : error); }

std::string with_warnings(std::string text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    text += &line == lines.data() ? " (" : "; ";
    text += line;
  }
  if (!lines.empty()) text += ')';
  return text;
}

// The port of that name, or the first that the arguments match.
bool find_port(const std::string& device, std::uint16_t& port_id) {
  const std::string name = device.substr(0, device.find(','));
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port_id) == 0) return true;
  rte_dev_iterator iterator;
  std::uint16_t id = RTE_MAX_ETHPORTS;
  RTE_ETH_FOREACH_MATCHING_DEV(id, device.c_str(), &iterator) {
    port_id = id;
    rte_eth_iterator_cleanup(&iterator);
    return true;
  }
  return false;
}

// As find_port, but makes the device if there is none. Returns DPDK's error, or 0.
int find_or_make(const std::string& device, std::uint16_t& port_id) {
  if (find_port(device, port_id)) return 0;
  return rte_dev_probe(device.c_str());
}

}  // namespace

int DpdkDevice::node_of(Eal& /*started*/, const std::string& device) {
  std::uint16_t port_id = RTE_MAX_ETHPORTS;
  if (find_or_make(device, port_id) != 0 || !find_port(device, port_id)) return -1;
  return rte_eth_dev_socket_id(port_id);
}

DpdkDeviceOpened DpdkDevice::open(Eal& eal, const DpdkDeviceSettings& settings,
                                  std::span<DpdkMemory* const> memories) {
  const auto refuse = [&](const std::string& why) {
    return DpdkDeviceOpened{
        nullptr, with_warnings("device \"" + settings.device + "\": " + why, eal.take_warnings())};
  };
  eal.take_warnings();
  if (memories.empty()) return refuse("no queue: give one packet memory for each");
  for (const DpdkMemory* memory : memories) {
    if (memory->payload_room() < settings.mtu_bytes) {
      return refuse("mtu_bytes = " + std::to_string(settings.mtu_bytes) +
                    ": the packet memory has room for " + std::to_string(memory->payload_room()));
    }
  }
  std::uint16_t port_id = RTE_MAX_ETHPORTS;
  if (const int result = find_or_make(settings.device, port_id); result != 0) {
    return refuse("cannot be made: " + text_of(result));
  }
  if (!find_port(settings.device, port_id)) return refuse("no Ethernet port came of it");
  auto device = std::unique_ptr<DpdkDevice>(new DpdkDevice(settings, port_id, memories));
  std::string error = device->configure();
  if (error.empty()) error = device->set_up_queues();
  if (!error.empty()) return refuse(error);

  device->set_up_pause();
  device->set_up_stamps();
  device->capabilities_ = probe_capabilities(port_id);
  device->capabilities_.arrival_times = device->stamps_.has_value();
  device->capabilities_.stamp_refusal = device->stamp_refusal_;
  device->capabilities_.send_path = device->send_path_;
  device->capabilities_.send_refusal = device->send_refusal_;
  if (is_one_of(device->capabilities_.driver, kNeedsGate)) {
    device->gate_ = eal.gate();
    if (device->gate_ == nullptr) {
      device->notes_.push_back(settings.device +
                               ": polled without a gate; a peer that leaves may end the process");
    }
  }
  for (const std::string& line : eal.take_warnings()) device->notes_.push_back(line);
  return {std::move(device), ""};
}

DpdkDevice::DpdkDevice(const DpdkDeviceSettings& settings, std::uint16_t port_id,
                       std::span<DpdkMemory* const> memories)
    : settings_(settings), port_id_(port_id), memories_(memories.begin(), memories.end()) {}

DpdkDevice::~DpdkDevice() {
  rte_eth_dev_info info{};
  const bool known = rte_eth_dev_info_get(port_id_, &info) == 0;
  // It may be the kernel's as well (mlx5).
  if (pause_before_) set_pause(port_id_, *pause_before_);
  if (started_) rte_eth_dev_stop(port_id_);
  if (gate_ != nullptr) return;
  rte_eth_dev_close(port_id_);
  if (known && info.device != nullptr) rte_dev_remove(info.device);
}

std::string DpdkDevice::configure() {
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(port_id_, &info); result != 0) {
    return "says nothing about itself: " + text_of(result);
  }
  const std::uint16_t queues = this->queues();
  if (queues > info.max_rx_queues || queues > info.max_tx_queues) {
    return std::to_string(queues) + " queues: the device has " +
           std::to_string(std::min(info.max_rx_queues, info.max_tx_queues));
  }
  rte_eth_conf conf{};
  // The IP MTU that a RoCE packet of full size wants.
  const std::uint32_t wanted = settings_.mtu_bytes + kLayersAbove;
  const std::uint32_t around = info.max_mtu != UINT16_MAX && info.max_rx_pktlen > info.max_mtu
                                   ? info.max_rx_pktlen - info.max_mtu
                                   : 18;
  const std::uint32_t largest = std::min<std::uint32_t>(
      info.max_mtu, info.max_rx_pktlen - std::min(info.max_rx_pktlen, around));
  const auto refuse = [&](const std::string& why) {
    return "mtu_bytes = " + std::to_string(settings_.mtu_bytes) + why;
  };
  const SizeArgument* const size = size_argument(info.driver_name);
  if (size != nullptr) {
    const std::uint32_t given = argument_value(settings_.device, *size);
    const std::uint32_t needed = wanted + kEthernetAround + size->overhead;
    const std::string key(size->key);
    if (given < needed) {
      return refuse(": too much for " + key + " = " + std::to_string(given) + "; give it " + key +
                    "=" + std::to_string(needed) + " or more");
    }
    std::string interface;
    if (const auto mtu = kernel_mtu(info.if_index, interface); mtu.has_value() && *mtu < wanted) {
      return refuse(" wants an IP MTU of " + std::to_string(wanted) + ", interface " + interface +
                    " has " + std::to_string(*mtu));
    }
  } else if (wanted > largest) {
    return refuse(" wants an IP MTU of " + std::to_string(wanted) + ", the device has " +
                  std::to_string(largest) + " at most");
  }
  conf.rxmode.mtu = std::max<std::uint32_t>(std::min(wanted, largest), info.min_mtu);
  conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  if (!settings_.device_clock) {
    stamp_refusal_ = "clock = \"poll\"";
  } else if ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) == 0) {
    stamp_refusal_ = "the device offers no receive timestamps";
  } else {
    stamping_ = true;
    conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
  }
  conf.txmode.mq_mode = RTE_ETH_MQ_TX_NONE;
  // With one memory and no references, the driver may return packets without looking at each.
  const bool one_memory = std::all_of(memories_.begin(), memories_.end(),
                                      [&](DpdkMemory* m) { return m == memories_.front(); });
  if (settings_.lend_payload) {
    send_path_ =
        send_path_of(info.driver_name, settings_.device,
                     (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0, send_refusal_);
  } else {
    send_refusal_ = "lend_payload = false";
  }
  if (send_path_ != SendPath::copied) {
    conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  } else if (one_memory) {
    conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  }
  if (queues > 1 && (info.flow_type_rss_offloads & RTE_ETH_RSS_UDP) != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  }
  if (const int result = rte_eth_dev_configure(port_id_, queues, queues, &conf); result != 0) {
    return "refuses its configuration: " + text_of(result);
  }
  std::uint16_t rx = settings_.rx_descriptors;
  std::uint16_t tx = settings_.tx_descriptors;
  if (rte_eth_dev_adjust_nb_rx_tx_desc(port_id_, &rx, &tx) == 0 &&
      (rx != settings_.rx_descriptors || tx != settings_.tx_descriptors)) {
    notes_.push_back(settings_.device + ": the device takes " + std::to_string(rx) +
                     " receive and " + std::to_string(tx) + " transmit descriptors instead of " +
                     std::to_string(settings_.rx_descriptors) + " and " +
                     std::to_string(settings_.tx_descriptors));
    settings_.rx_descriptors = rx;
    settings_.tx_descriptors = tx;
  }
  return "";
}

std::string DpdkDevice::set_up_queues() {
  const int socket = rte_eth_dev_socket_id(port_id_);
  const auto node = static_cast<unsigned>(socket);
  for (std::uint16_t q = 0; q < queues(); ++q) {
    if (const int result = rte_eth_rx_queue_setup(port_id_, q, settings_.rx_descriptors, node,
                                                  nullptr, memories_[q]->handle());
        result != 0) {
      return "receive queue " + std::to_string(q) + ": " + text_of(result);
    }
    if (const int result =
            rte_eth_tx_queue_setup(port_id_, q, settings_.tx_descriptors, node, nullptr);
        result != 0) {
      return "transmit queue " + std::to_string(q) + ": " + text_of(result);
    }
  }
  if (settings_.mac.has_value()) {
    rte_ether_addr mac{};
    std::memcpy(mac.addr_bytes, settings_.mac->bytes.data(), sizeof mac.addr_bytes);
    if (const int result = rte_eth_dev_default_mac_addr_set(port_id_, &mac); result != 0) {
      return "refuses its MAC address: " + text_of(result);
    }
  }
  if (const int result = rte_eth_dev_start(port_id_); result != 0) {
    return "does not start: " + text_of(result);
  }
  started_ = true;
  if (settings_.promiscuous) {
    if (const int result = rte_eth_promiscuous_enable(port_id_); result != 0) {
      notes_.push_back(settings_.device + ": no promiscuous mode: " + text_of(result));
    }
  }
  if (settings_.all_multicast) {
    const int result = rte_eth_allmulticast_enable(port_id_);
    // Devices without it that are not kernel interfaces let everything in.
    rte_eth_dev_info info{};
    const bool filtered =
        result != -ENOTSUP || (rte_eth_dev_info_get(port_id_, &info) == 0 && info.if_index != 0);
    if (result != 0 && filtered && !settings_.promiscuous) {
      notes_.push_back(settings_.device + ": no all-multicast mode: " + text_of(result) +
                       "; if IPv6 neighbours do not find this port, set promiscuous = true");
    }
  }
  return "";
}

void DpdkDevice::set_up_pause() {
  pause_frames_.emplace(port_id_);
  if (!settings_.pause) return;
  const auto note = [this](const std::string& text) {
    notes_.push_back(settings_.device + ": " + text);
  };
  const PauseState before = probe_pause(port_id_);
  const PausePlan plan = plan_pause(settings_.pause, before);
  if (!plan.note.empty()) note(plan.note);
  if (!plan.set) return;
  const std::string error = set_pause(port_id_, *plan.set);
  const PauseState after = probe_pause(port_id_);
  if (after.mode != before.mode) pause_before_ = before.mode;
  if (after.mode == *plan.set) return;
  note("pause = \"" + std::string(name_of(*plan.set)) + "\" was not taken" +
       (error.empty() ? "" : " (" + error + ")") + ": \"" + std::string(name_of(after.mode)) +
       "\" is in force");
}

void DpdkDevice::set_up_stamps() {
  if (stamping_) stamps_ = find_stamps(port_id_, stamp_refusal_);
}

DpdkDeviceStatistics DpdkDevice::statistics() const {
  DpdkDeviceStatistics s;
  rte_eth_stats raw{};
  if (rte_eth_stats_get(port_id_, &raw) != 0) return s;
  s.rx_packets = raw.ipackets;
  s.tx_packets = raw.opackets;
  s.rx_bytes = raw.ibytes;
  s.tx_bytes = raw.obytes;
  s.rx_missed = raw.imissed;
  s.rx_errors = raw.ierrors;
  s.rx_no_buffer = raw.rx_nombuf;
  s.tx_errors = raw.oerrors;
  if (pause_frames_) s.pause = pause_frames_->read();
  return s;
}

bool DpdkDevice::link_up() const {
  // Drivers of kernel interfaces do not look at their link.
  const std::size_t at = settings_.device.find(",iface=");
  if (at != std::string::npos) {
    const std::string from = settings_.device.substr(at + 7);
    return interface_runs(from.substr(0, from.find(',')));
  }
  rte_eth_link link{};
  const int result = rte_eth_link_get_nowait(port_id_, &link);
  return result == -ENOTSUP || (result == 0 && link.link_status == RTE_ETH_LINK_UP);
}

}  // namespace paceline
