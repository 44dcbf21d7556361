// The built-in DCQCN behind the interface of plug-ins: the same law, so that what the interface
// costs can be told from what the algorithm does.
#include <paceline/cc.h>

#include <vector>

#include "cc/rate/dcqcn.h"

namespace {

using paceline::cc::Dcqcn;

static_assert(sizeof(Dcqcn::State) <= PACELINE_CC_STATE_BYTES);
static_assert(sizeof(Dcqcn::Params) <= PACELINE_CC_DERIVED_BYTES);

void derive(const double* values, const paceline_cc_port* port, void* derived) {
  paceline::cc::PortFacts facts;
  facts.link_rate = paceline::Rate{port->link_bps};
  facts.mtu_bytes = port->mtu_bytes;
  facts.full_packet_bytes = port->full_packet_bytes;
  facts.base_rtt_ns = port->base_rtt_ns;
  *static_cast<Dcqcn::Params*>(derived) = Dcqcn::make_params({values, Dcqcn::kParams}, facts);
}

void on_item(const paceline_cc_item& item) {
  Dcqcn::on_event(*static_cast<Dcqcn::State*>(item.state),
                  *static_cast<const Dcqcn::Params*>(item.derived),
                  *reinterpret_cast<const paceline::cc::Event*>(item.event),
                  *reinterpret_cast<paceline::cc::Decision*>(item.decision));
}

[[gnu::noinline]] void on_several(const paceline_cc_item* items, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) on_item(items[i]);
}

// One is what there mostly is: it costs no frame of its own.
void on_events(const paceline_cc_item* items, std::uint32_t count) {
  if (count == 1) return on_item(*items);
  on_several(items, count);
}

// The parameters of the built-in, and its profiles.
struct Tables {
  Tables() {
    const paceline::cc::AlgorithmInfo info = Dcqcn::info();
    for (const paceline::cc::ParamSpec& spec : info.params) {
      params.push_back({spec.name.data(), spec.unit.data(), spec.default_value, spec.min, spec.max,
                        spec.live ? 1U : 0U, 0, spec.meaning.data(), spec.source.data()});
    }
    for (const paceline::cc::Profile& profile : info.profiles) {
      auto& list = values.emplace_back();
      for (const paceline::cc::ProfileValue& value : profile.values) {
        list.push_back({value.name.data(), value.value, value.per_bps});
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      profiles.push_back({info.profiles[i].name.data(), info.profiles[i].source.data(),
                          values[i].data(), static_cast<std::uint32_t>(values[i].size()), 0});
    }
    algorithm.size = sizeof algorithm;
    algorithm.abi_major = PACELINE_CC_ABI_MAJOR;
    algorithm.abi_minor = PACELINE_CC_ABI_MINOR;
    algorithm.name = "dcqcn_plugin";
    algorithm.summary = "the built-in DCQCN as a plug-in";
    algorithm.context = PACELINE_CC_PER_QP;
    algorithm.echo = PACELINE_CC_ECHO_CNP;
    algorithm.wants = info.wants;
    algorithm.state_bytes = sizeof(Dcqcn::State);
    algorithm.derived_bytes = sizeof(Dcqcn::Params);
    algorithm.param_count = static_cast<std::uint32_t>(params.size());
    algorithm.param_size = sizeof(paceline_cc_param);
    algorithm.params = params.data();
    algorithm.derive = derive;
    algorithm.on_events = on_events;
    algorithm.profile_count = static_cast<std::uint32_t>(profiles.size());
    algorithm.profiles = profiles.data();
  }

  std::vector<paceline_cc_param> params;
  std::vector<std::vector<paceline_cc_profile_value>> values;
  std::vector<paceline_cc_profile> profiles;
  paceline_cc_algorithm algorithm{};
};

}  // namespace

extern "C" const paceline_cc_algorithm* paceline_cc_plugin(std::uint32_t host_abi) {
  static const Tables tables;
  return host_abi >> 16 == PACELINE_CC_ABI_MAJOR ? &tables.algorithm : nullptr;
}
