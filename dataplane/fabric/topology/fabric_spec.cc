#include "dataplane/fabric/topology/fabric_spec.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "dataplane/port/packet.h"

namespace paceline::fabric {

namespace {

constexpr std::size_t kMostCurves = 255;  // Egress::curve

class Checker {
 public:
  explicit Checker(const FabricSpec& spec) : spec_(spec) {}

  std::vector<std::string> run(bool with_paths) {
    numbers();
    events();
    if (links()) {
      buffers();
      if (with_paths) reachability();
    }
    return std::move(errors_);
  }

 private:
  void require(bool ok, const std::string& what) {
    if (!ok) errors_.push_back(what);
  }

  static bool probability(double p) { return p >= 0 && p <= 1; }
  static bool good_rate(Rate rate) {
    return rate >= rate_from_mbps(1) && rate <= rate_from_gbps(8000);
  }
  static bool good_delay(Picos delay) {
    return delay.count > 0 && delay <= picos_from_micros(10'000'000);
  }

  void events() {
    for (std::size_t i = 0; i < spec_.events.size(); ++i) {
      const LinkEvent& event = spec_.events[i];
      const std::string name = "event " + std::to_string(i) + ": ";
      require(event.link < spec_.links.size(),
              name + "there is no link " + std::to_string(event.link));
      require(event.at.count >= 0 && event.at != kNever, name + "its time is negative or never");
      require(event.action != LinkAction::rate || good_rate(event.rate),
              name + "rate must be within 1 Mb/s and 8 Tb/s");
      require(event.action != LinkAction::delay || good_delay(event.delay),
              name + "delay must be above 0 and at most 10 s");
      require(probability(event.probability), name + "probability must be within 0 and 1");
      require(event.factor > 0 && event.factor <= 1000, name + "factor must be within 0 and 1000");
      require(event.traffic_class <= kTrafficClasses, name + "no such traffic class");
      require(event.every.count >= 0, name + "its repetition is negative");
    }
    require(spec_.reroute_delay.count >= 0 && spec_.reroute_delay <= picos_from_micros(10'000'000),
            "the delay of rerouting must be within 0 and 10 s");
    require(spec_.reorder_delay.count > 0 && spec_.reorder_delay <= picos_from_micros(10'000'000),
            "the delay of reordered packets must be above 0 and at most 10 s");
    require(spec_.class_weights[kControlClass] == 0,
            "class " + std::to_string(kControlClass) + " is control: strict, its weight is 0");
    for (const std::uint32_t weight : spec_.class_weights) {
      require(weight <= 1000, "weight " + std::to_string(weight) + " of a class: at most 1000");
    }
  }

  void numbers() {
    require(spec_.hosts >= 1, "a fabric needs at least one host");
    require(spec_.ports >= 1 && spec_.hosts % std::max(spec_.ports, 1U) == 0,
            std::to_string(spec_.hosts) + " hosts: not a multiple of the " +
                std::to_string(spec_.ports) + " ports of a NIC");
    require(spec_.hosts < 0x7FFF'FFFF && spec_.switches < 0x7FFF'FFFF, "too many nodes");
    const ClosShape& shape = spec_.shape;
    require(!shape.regular() ||
                (spec_.hosts == shape.hosts() && spec_.switches == shape.switches() &&
                 spec_.links.size() ==
                     std::size_t{spec_.hosts} + shape.leaf_links() + shape.core_links()),
            "nodes and links are not those of the regular shape");
    marking();
    const PfcSpec& pfc = spec_.pfc;
    require(pfc.alpha >= 1.0 / 65536 && pfc.alpha <= 64,
            "PFC: alpha " + std::to_string(pfc.alpha) + " must be within 1/65536 and 64");
    require((pfc.lossless_classes >> kControlClass & 1U) == 0,
            "PFC: the control class " + std::to_string(kControlClass) + " cannot be lossless");
    const TrimSpec& trim = spec_.trim;
    require(trim.to_class > kDefaultDataClass && trim.to_class < kTrafficClasses,
            "trimming: class " + std::to_string(trim.to_class) + " must be within " +
                std::to_string(kDefaultDataClass + 1) + " and " +
                std::to_string(kTrafficClasses - 1) + ", ahead of data");
    require((pfc.lossless_classes >> trim.to_class & 1U) == 0,
            "trimming: class " + std::to_string(trim.to_class) +
                " is lossless; trimmed packets must not be paused");
    require(!trim.enabled || spec_.class_weights[trim.to_class % kTrafficClasses] == 0,
            "trimming: class " + std::to_string(trim.to_class) +
                " has a weight; trimmed packets need strict priority");
    answers();
    notices();
    require(spec_.buffer_bytes <= 0xFFFF'FFFF,
            "switch buffer of " + std::to_string(spec_.buffer_bytes) + " B: at most 4 GiB - 1");
    require(pfc.reserve_bytes <= spec_.buffer_bytes && pfc.headroom_bytes <= spec_.buffer_bytes &&
                pfc.xon_offset_bytes <= spec_.buffer_bytes,
            "PFC: reserve, headroom and X-ON offset must not exceed the switch buffer");
    credits();
    require(
        spec_.drop_control_ppm <= 1'000'000,
        "drop_control_ppm " + std::to_string(spec_.drop_control_ppm) + " must not exceed 1000000");
  }

  void marking() {
    const EcnSpec& ecn = spec_.ecn;
    curve(ecn, "ECN: ");
    require(ecn.at_rates.size() <= kMostCurves,
            "ECN: curves for " + std::to_string(ecn.at_rates.size()) + " rates; at most " +
                std::to_string(kMostCurves));
    for (std::size_t i = 0; i < ecn.at_rates.size(); ++i) {
      const Rate rate = ecn.at_rates[i].rate;
      const std::string name = "ECN at " + std::to_string(rate.bps) + " b/s: ";
      curve(ecn.at_rates[i].curve, name);
      const auto same = [&](const EcnSpec::AtRate& other) { return other.rate == rate; };
      require(std::none_of(ecn.at_rates.begin(), ecn.at_rates.begin() + static_cast<long>(i), same),
              name + "given twice");
    }
  }

  void curve(const MarkingCurve& of, const std::string& name) {
    require(of.kmin_bytes <= of.kmax_bytes, name + "kmin " + std::to_string(of.kmin_bytes) +
                                                " B must not exceed kmax " +
                                                std::to_string(of.kmax_bytes) + " B");
    require(of.pmax >= 0 && of.pmax <= 1,
            name + "pmax " + std::to_string(of.pmax) + " must be within 0 and 1");
  }

  void notices() {
    const NoticeSpec& notice = spec_.notice;
    if (!notice.enabled) return;
    require(notice.set_point_bytes != 0 || spec_.ecn.kmin_bytes != 0,
            "notices: the set point is kmin, 0 B; a queue must have a length to be compared with");
    for (const EcnSpec::AtRate& own : spec_.ecn.at_rates) {
      require(notice.set_point_bytes != 0 || own.curve.kmin_bytes != 0,
              "notices: the set point is kmin at " + std::to_string(own.rate.bps) + " b/s, 0 B");
    }
    require(notice.weight >= 0,
            "notices: weight " + std::to_string(notice.weight) + " must not be negative");
    require(notice.sample_bytes != 0, "notices: a sample every 0 B; at least 1 B");
  }

  void answers() {
    for (const std::uint8_t to : {spec_.ack_class, spec_.cnp_class}) {
      require(to < kTrafficClasses, "class " + std::to_string(to) + " of ACKs or CNPs: at most " +
                                        std::to_string(kTrafficClasses - 1));
      // Hosts send them whether there are credits or not.
      require(!spec_.credit.enabled || (spec_.pfc.lossless_classes >> to & 1U) == 0,
              "class " + std::to_string(to) + " of ACKs or CNPs: credits rule there");
    }
  }

  void credits() {
    if (!spec_.credit.enabled) return;
    require(!spec_.pfc.enabled, "flow control is by pauses or by credits, not both");
    require(spec_.pfc.lossless_classes != 0, "credits: no class is lossless");
    const std::uint64_t least =
        credit_blocks(largest_packet(spec_)) * kCreditBlock + credit_update_of(spec_);
    const std::uint64_t given = spec_.credit.buffer_bytes;
    require(given == 0 || given >= least, "credits: a buffer of " + std::to_string(given) +
                                              " B must hold the largest packet and "
                                              "what is not told yet, " +
                                              std::to_string(least) + " B");
    require(spec_.credit.update_bytes <= spec_.buffer_bytes,
            "credits: updates every " + std::to_string(spec_.credit.update_bytes) +
                " B: more than the switch buffer");
    // A copy would take credits that were never given.
    bool copies = false;
    for (const LinkSpec& link : spec_.links) copies = copies || link.duplicate > 0;
    for (const LinkEvent& event : spec_.events) {
      copies = copies || (event.action == LinkAction::duplicate && event.probability > 0);
    }
    require(!copies, "credits: links cannot duplicate packets");
  }

  // Whether nodes and attachments make sense, so that the rest can be looked at.
  bool links() {
    const std::uint64_t nodes = std::uint64_t{spec_.hosts} + spec_.switches;
    bool wired = spec_.links.size() < 0x3FFF'FFFF;
    require(wired, "too many links");
    std::vector<std::uint32_t> degree(nodes, 0);
    for (std::size_t i = 0; i < spec_.links.size(); ++i) {
      const LinkSpec& link = spec_.links[i];
      const std::string name = "link " + std::to_string(i) + " (" + std::to_string(link.a) +
                               " to " + std::to_string(link.b) + "): ";
      if (link.a >= nodes || link.b >= nodes) {
        require(false, name + "nodes are numbered 0 to " + std::to_string(nodes - 1));
        wired = false;
        continue;
      }
      if (link.a == link.b) {
        require(false, name + "a node cannot be linked to itself");
        wired = false;
      }
      ++degree[link.a];
      ++degree[link.b];
      require(good_rate(link.rate), name + "rate " + std::to_string(link.rate.bps) +
                                        " b/s must be within 1 Mb/s and 8 Tb/s");
      require(good_delay(link.delay), name + "delay must be above 0 and at most 10 s");
      require(probability(link.loss) && probability(link.error_rate),
              name + "loss and error rate are probabilities, 0 to 1");
      require(probability(link.duplicate) && probability(link.reorder),
              name + "duplicate and reorder are probabilities, 0 to 1");
    }
    for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
      if (degree[host] == 1) continue;
      require(false, "host " + std::to_string(host) + " has " + std::to_string(degree[host]) +
                         " links; a host port has exactly one");
      wired = false;
    }
    for (std::uint64_t node = spec_.hosts; node < nodes; ++node) {
      require(degree[node] <= 0xFFFF,
              "switch " + std::to_string(node) + " has more than 65535 ports");
    }
    return wired;
  }

  void buffers() {
    std::vector<std::uint64_t> set_aside(spec_.switches, 0);
    if (spec_.pfc.enabled || spec_.credit.enabled) {
      const auto classes = static_cast<unsigned>(std::popcount(spec_.pfc.lossless_classes));
      for (const LinkSpec& link : spec_.links) {
        for (const std::uint32_t node : {link.a, link.b}) {
          if (node < spec_.hosts) continue;
          set_aside[node - spec_.hosts] +=
              classes * (spec_.credit.enabled ? credit_buffer_of(spec_, link)
                                              : headroom_of(spec_, link) + spec_.pfc.reserve_bytes);
        }
      }
    }
    for (std::uint32_t i = 0; i < spec_.switches; ++i) {
      require(set_aside[i] < spec_.buffer_bytes,
              "switch " + std::to_string(spec_.hosts + i) + ": reserves and headrooms of " +
                  std::to_string(set_aside[i]) + " B leave nothing of a buffer of " +
                  std::to_string(spec_.buffer_bytes) + " B to share");
    }
  }

  void reachability() {
    const std::vector<std::uint32_t> island = islands(spec_);
    std::uint64_t cut_off = 0;
    std::uint32_t first = 0;
    for (std::uint32_t host = 1; host < spec_.hosts; ++host) {
      if (island[host] == 0) continue;
      if (cut_off++ == 0) first = host;
    }
    if (cut_off != 0) {
      require(false, "no path from host 0 to host " + std::to_string(first) + " (" +
                         std::to_string(cut_off) + " of " + std::to_string(spec_.hosts) +
                         " hosts cannot be reached from host 0)");
    }
  }

  const FabricSpec& spec_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> check_buildable(const FabricSpec& spec) {
  return Checker(spec).run(false);
}

std::vector<std::string> check(const FabricSpec& spec) { return Checker(spec).run(true); }

// Hosts forward nothing and have one link, so connected means reachable.
std::vector<std::uint32_t> islands(const FabricSpec& spec) {
  std::vector<std::uint32_t> parent(std::size_t{spec.hosts} + spec.switches);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::uint32_t node) {
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
  };
  // The smaller number becomes the root, so that the root of a host is a host.
  for (const LinkSpec& link : spec.links) {
    const auto [low, high] = std::minmax({root(link.a), root(link.b)});
    parent[high] = low;
  }
  std::vector<std::uint32_t> out(spec.hosts);
  for (std::uint32_t host = 0; host < spec.hosts; ++host) out[host] = root(host);
  return out;
}

std::uint64_t headroom_of(const FabricSpec& spec, const LinkSpec& link) {
  if (spec.pfc.headroom_bytes != 0) return spec.pfc.headroom_bytes;
  return bytes_in(link.delay * 3, link.rate);
}

std::uint32_t largest_packet(const FabricSpec& spec) {
  const std::uint32_t payload = std::max(spec.mtu_bytes, spec.payload_room);
  const auto headers = static_cast<std::uint32_t>(kMaxHeaderBytes) + 8;  // ICRC and FCS
  return spec.wire.wire_bytes(headers + payload, static_cast<std::uint16_t>(payload));
}

std::uint64_t credit_update_of(const FabricSpec& spec) {
  if (spec.credit.update_bytes == 0) {
    return credit_blocks(largest_packet(spec) / 2) * std::uint64_t{kCreditBlock};
  }
  return (spec.credit.update_bytes + kCreditBlock - 1) / kCreditBlock * kCreditBlock;
}

std::uint64_t credit_buffer_of(const FabricSpec& spec, const LinkSpec& link) {
  if (spec.credit.buffer_bytes != 0) return spec.credit.buffer_bytes / kCreditBlock * kCreditBlock;
  const std::uint64_t round_trip = bytes_in(link.delay * 2, link.rate);
  const std::uint64_t bytes = round_trip + round_trip / 16 + credit_update_of(spec) +
                              3 * std::uint64_t{largest_packet(spec)} +
                              bytes_in(spec.transmit_ahead, link.rate);
  return (bytes + kCreditBlock - 1) / kCreditBlock * kCreditBlock;
}

wire::IpAddress host_address_v6(const FabricSpec& spec, std::uint32_t host) {
  wire::IpAddress address;
  wire::store_be64(address.bytes.data(), spec.prefix_v6);
  wire::store_be64(address.bytes.data() + 8, spec.subnet_base + host + 1);
  return address;
}

std::uint32_t host_of(const FabricSpec& spec, const wire::IpAddress& address) {
  if (address.is_v4()) return host_at(spec, address.v4_value() - spec.subnet_base - 1);
  const std::uint64_t low = address.low();
  if (address.high() != spec.prefix_v6 || low >> 32 != 0) return spec.hosts;
  return host_at(spec, static_cast<std::uint32_t>(low) - spec.subnet_base - 1);
}

}  // namespace paceline::fabric
