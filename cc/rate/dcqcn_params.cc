#include "cc/rate/dcqcn_params.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "cc/rate/dcqcn.h"

namespace paceline::cc {
namespace {

constexpr ParamSpec kDcqcnSpecs[] = {
    {"alpha_gain", "1", 1.0 / 256, 1e-5, 1, true, "g: weight of one alpha period in alpha", "D15"},
    {"alpha_period_us", "us", 55, 0.1, 131'071, true,
     "K: alpha decays after this long without a CNP; sampled: alpha is updated this often",
     "D15; NV dce_tcp_rtt"},
    {"initial_alpha", "1", 1, 0, 1, true, "alpha at the first CNP", "D15"},
    {"cnp_sampling", "flag", 0, 0, 1, true,
     "0: a CNP acts at once; 1: it sets flags that the alpha update and the rate-decrease check "
     "read",
     "D15; NV, HC"},
    {"decrease_period_us", "us", 50, 0, 1'000'000, true,
     "rate-decrease monitor period: at most one cut in it; 0 = every CNP cuts",
     "D15: the CNP interval; NV rate_reduce_monitor_period"},
    {"min_decrease_factor", "1", 0.5, 0, 1, true,
     "rate after a cut, as a share of the rate before, is at least this", "NV rpg_min_dec_fac"},
    {"clamp_target", "flag", 1, 0, 1, true,
     "1: every cut sets the target to the current rate; 0: only the first cut after an increase",
     "D15; NV clamp_tgt_rate"},
    {"clamp_after_timer", "flag", 1, 0, 1, true,
     "with clamp_target 0: increases by the timer count too, not only those by the byte counter",
     "NV clamp_tgt_rate_after_time_inc"},
    {"first_cnp_rate", "1", 0, 0, 1, true,
     "the first CNP lowers rate and target to this share of the line rate; 0 = none",
     "NV rate_to_set_on_first_cnp"},
    {"increase_timer_us", "us", 55, 1, 1'000'000, true,
     "T: an increase event this often after a cut", "D15; NV rpg_time_reset"},
    {"byte_counter", "bytes", 10e6, 0, 1e12, true,
     "B: an increase event per this many bytes sent; 0 = off, the timer decides alone",
     "D15; NV rpg_byte_reset"},
    {"fast_recovery_stages", "count", 5, 0, 31, true,
     "F: increase events in fast recovery, before the target is raised", "D15; NV rpg_threshold"},
    {"additive_increase_mbps", "Mb/s", 40, 0, 100'000, true, "R_AI: step of the target",
     "D15; NV rpg_ai_rate"},
    {"hyper_increase_mbps", "Mb/s", 200, 0, 400'000, true,
     "R_HAI: step of the target once timer and byte counter both exceed F",
     "HR at 100 Gb/s; NV rpg_hai_rate"},
    {"hyper_ramp", "flag", 1, 0, 1, true,
     "1: the i-th hyper increase steps by i x R_HAI; 0: each by R_HAI", "NS3 (as QCN); HC"},
    {"min_rate_mbps", "Mb/s", 100, 1, 100'000, true, "floor of the rate",
     "HC, NS3; NV rpg_min_rate"},
    {"start_rate", "1", 1, 0.001, 1, true, "rate of a new context as a share of the line rate",
     "D15: line rate"},
    kRateWindowSpec,
};
static_assert(std::size(kDcqcnSpecs) == Dcqcn::kParams);

// [D15] for 40 Gb/s, unscaled. What the paper leaves open: R_HAI from [HR]; minimum rate from [NS3]
// (100 Mb/s, as in [HC]); hyper increase as in [NS3]. It expects a notification point that sends at
// most one CNP per flow and 50 us; the same bound here only evens out jitter of their arrival.
constexpr ProfileValue kPaper[] = {
    {"alpha_gain", 1.0 / 256},
    {"alpha_period_us", 55},
    {"initial_alpha", 1},
    {"cnp_sampling", 0},
    {"decrease_period_us", 50},
    {"min_decrease_factor", 0.5},
    {"clamp_target", 1},
    {"clamp_after_timer", 1},
    {"first_cnp_rate", 0},
    {"increase_timer_us", 55},
    {"byte_counter", 10e6},
    {"fast_recovery_stages", 5},
    {"additive_increase_mbps", 40},
    {"hyper_increase_mbps", 50, 25e9},
    {"hyper_ramp", 1},
    {"min_rate_mbps", 100},
    {"start_rate", 1},
};

// [NV]: dce_tcp_g 1019/1024 keeps 1019/1024 of alpha, hence g = 5/1024; rpg_gd 11 is alpha / 2.
constexpr ProfileValue kMellanox[] = {
    {"alpha_gain", 5.0 / 1024},    {"alpha_period_us", 1},      {"initial_alpha", 1023.0 / 1024},
    {"cnp_sampling", 1},           {"decrease_period_us", 4},   {"min_decrease_factor", 0.5},
    {"clamp_target", 0},           {"clamp_after_timer", 1},    {"first_cnp_rate", 0},
    {"increase_timer_us", 300},    {"byte_counter", 32'767},    {"fast_recovery_stages", 1},
    {"additive_increase_mbps", 5}, {"hyper_increase_mbps", 50}, {"hyper_ramp", 0},
    {"min_rate_mbps", 1},          {"start_rate", 1},
};

// [HR] `dcqcn`, behaviour from [HC]: no byte counter, no bound on a cut, every marked ACK is a CNP,
// the first CNP sets the rate to 1.0 of what it is.
constexpr ProfileValue kHpccRepo[] = {
    {"alpha_gain", 1.0 / 256},
    {"alpha_period_us", 1},
    {"initial_alpha", 1},
    {"cnp_sampling", 1},
    {"decrease_period_us", 4},
    {"min_decrease_factor", 0},
    {"clamp_target", 0},
    {"clamp_after_timer", 1},
    {"first_cnp_rate", 1},
    {"increase_timer_us", 300},
    {"byte_counter", 0},
    {"fast_recovery_stages", 1},
    {"additive_increase_mbps", 5, 25e9},
    {"hyper_increase_mbps", 50, 25e9},
    {"hyper_ramp", 0},
    {"min_rate_mbps", 1000},
    {"start_rate", 1},
};

// The values of a profile with some of them replaced; a name that the profile lacks does not
// compile.
template <std::size_t N, std::size_t M>
consteval std::array<ProfileValue, N> with(const ProfileValue (&base)[N],
                                           const ProfileValue (&changes)[M]) {
  std::array<ProfileValue, N> values{};
  std::copy(std::begin(base), std::end(base), values.begin());
  for (const ProfileValue& change : changes) {
    const auto same = [&](const ProfileValue& value) { return value.name == change.name; };
    const auto at = std::find_if(values.begin(), values.end(), same);
    if (at == values.end()) throw "the profile has no value of this name";
    *at = change;
  }
  return values;
}

// [HR] `dcqcn_paper`: the same with the paper's timers (alpha every 50 us there, not 55).
constexpr auto kHpccRepoPaper = with(
    kHpccRepo, {{"alpha_period_us", 50}, {"decrease_period_us", 50}, {"increase_timer_us", 55}});

// Found by `paceline tune` from `paper` (configs/experiments/tuned.toml holds the commands): best
// objective with a p99 queue of at most 16 MB, half the buffer, without drops and pauses. Each is
// for one workload at 100 Gb/s and says nothing about others.
constexpr auto kTunedIncast = with(kPaper, {
                                               {"alpha_gain", 0.000434},
                                               {"alpha_period_us", 394},
                                               {"initial_alpha", 0.751},
                                               {"decrease_period_us", 4.05},
                                               {"increase_timer_us", 20},
                                               {"byte_counter", 191'228'353},
                                               {"fast_recovery_stages", 1},
                                               {"additive_increase_mbps", 442},
                                               {"hyper_increase_mbps", 2250, 100e9},
                                               {"start_rate", 0.0619},
                                           });

constexpr auto kTunedWebsearch = with(kPaper, {
                                                  {"alpha_gain", 0.00458},
                                                  {"alpha_period_us", 147},
                                                  {"initial_alpha", 0.994},
                                                  {"decrease_period_us", 7.1},
                                                  {"increase_timer_us", 78.1},
                                                  {"byte_counter", 1'176'766},
                                                  {"fast_recovery_stages", 3},
                                                  {"additive_increase_mbps", 215},
                                                  {"hyper_increase_mbps", 24},
                                                  {"start_rate", 0.329},
                                              });

constexpr auto kTunedMoe = with(kPaper, {
                                            {"alpha_gain", 0.0109},
                                            {"alpha_period_us", 649},
                                            {"initial_alpha", 0.678},
                                            {"decrease_period_us", 5.69},
                                            {"increase_timer_us", 55.1},
                                            {"byte_counter", 435'484'006},
                                            {"fast_recovery_stages", 4},
                                            {"additive_increase_mbps", 77.4},
                                            {"hyper_increase_mbps", 432},
                                            {"start_rate", 0.0254},
                                        });

constexpr auto kTunedCore = with(kPaper, {
                                             {"alpha_gain", 0.002},
                                             {"alpha_period_us", 205},
                                             {"initial_alpha", 0.922},
                                             {"decrease_period_us", 14.3},
                                             {"increase_timer_us", 25.6},
                                             {"byte_counter", 1'543'394},
                                             {"fast_recovery_stages", 2},
                                             {"additive_increase_mbps", 325},
                                             {"hyper_increase_mbps", 265},
                                             {"start_rate", 0.0502},
                                         });

constexpr auto kTunedHadoop = with(kPaper, {
                                               {"alpha_gain", 0.000572},
                                               {"alpha_period_us", 7.63},
                                               {"initial_alpha", 0.517},
                                               {"decrease_period_us", 7.47},
                                               {"increase_timer_us", 56.7},
                                               {"byte_counter", 113'972},
                                               {"fast_recovery_stages", 6},
                                               {"additive_increase_mbps", 360},
                                               {"hyper_increase_mbps", 236},
                                               {"start_rate", 0.156},
                                           });

constexpr Profile kDcqcnProfiles[] = {
    {"paper", "SIGCOMM 2015 values for 40 Gb/s, unscaled; R_HAI from the HPCC repository's run.py",
     kPaper},
    {"mellanox", "ConnectX-4 and later firmware defaults (DOCA 3.4, DOC-2790, mlxconfig)",
     kMellanox},
    {"hpcc-repo", "HPCC repository, run.py --cc dcqcn: the baseline of the HPCC paper's figures",
     kHpccRepo},
    {"hpcc-repo-paper", "HPCC repository, run.py --cc dcqcn_paper", kHpccRepoPaper},
    {"tuned-incast", "found by paceline tune for 32 x 10 MB into one port", kTunedIncast},
    {"tuned-websearch", "found by paceline tune for WebSearch traffic at 80 %", kTunedWebsearch},
    {"tuned-moe", "found by paceline tune for an all-to-all of 32 hosts at skew 1", kTunedMoe},
    {"tuned-core", "found by paceline tune for an all-to-all through a 2:1 oversubscribed core",
     kTunedCore},
    {"tuned-hadoop", "found by paceline tune for Hadoop traffic at 80 %", kTunedHadoop},
};

}  // namespace

std::span<const ParamSpec> dcqcn_specs() { return kDcqcnSpecs; }
std::span<const Profile> dcqcn_profiles() { return kDcqcnProfiles; }

}  // namespace paceline::cc
