#include "tools/plugin/cc_sources.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

namespace paceline::tools {

namespace {

struct SourceName {
  std::string_view name;
  std::string_view meaning;
};

constexpr SourceName kSourceNames[] = {
    {"QAU", "IEEE 802.1Qau-2010, quantised congestion notification, its values for 10 Gb/s"},
    {"D15", "DCQCN: Zhu et al., SIGCOMM 2015, its values for 40 Gb/s"},
    {"SIGCOMM'10", "DCTCP: Alizadeh et al., SIGCOMM 2010"},
    {"SIGCOMM'13", "pFabric: Alizadeh et al., SIGCOMM 2013"},
    {"SIGCOMM'15", "TIMELY: Mittal et al., SIGCOMM 2015"},
    {"CoNEXT'15", "pHost: Gao et al., CoNEXT 2015"},
    {"CoNEXT'16", "patched TIMELY: Zhu et al., \"ECN or Delay\", CoNEXT 2016"},
    {"SIGCOMM'18", "Homa: Montazeri et al., SIGCOMM 2018"},
    {"SIGCOMM'19", "HPCC: Li et al., SIGCOMM 2019"},
    {"Swift", "Kumar et al., SIGCOMM 2020"},
    {"NSDI'22", "PowerTCP: Addanki et al., NSDI 2022"},
    {"NSDI'25", "SIRD: Prasopoulos et al., NSDI 2025"},
    {"NS3", "bobzhuyb/ns3-rdma, the simulator of DCQCN's first author"},
    {"HR", "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py"},
    {"HC", "alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc: code and defaults"},
    {"NV", "NVIDIA DOCA 3.4, \"DCQCN CC Parameters\", and mlxconfig of a ConnectX card"},
    {"UE", "ultraethernet/uet-htsim, htsim/sim"},
    {"UEC", "Ultra Ethernet Consortium"},
    {"PT", "inet-tub/ns3-datacenter, the simulator of PowerTCP's authors"},
    {"module", "PlatformLab/HomaModule, Homa for Linux"},
    {"simulator", "the simulator of SIRD's authors"},
    {"own", "chosen here"},
    {"(r)", "recalled from the paper, not read again there"},
};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool occurs(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !in_word(name.front()) || !in_word(text[at - 1]);
    const bool ends = end == text.size() || !in_word(name.back()) || !in_word(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

std::string source_legend(const cc::AlgorithmInfo& info) {
  std::string text;
  for (const SourceName& source : kSourceNames) {
    const bool used = std::any_of(
        info.params.begin(), info.params.end(),
        [&source](const cc::ParamSpec& spec) { return occurs(spec.source, source.name); });
    if (used) text += fmt::format("  {:<11} {}\n", source.name, source.meaning);
  }
  return text;
}

}  // namespace paceline::tools
