#include "cc/registry.h"

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/eqds/eqds.h"
#include "cc/homa/homa.h"
#include "cc/nearest_name.h"
#include "cc/plugin/plugin.h"
#include "cc/rate/dcqcn.h"
#include "cc/rate/fixed.h"
#include "cc/rate/switch_notified.h"
#include "cc/rate/timely.h"
#include "cc/sird/sird.h"
#include "cc/window/dctcp.h"
#include "cc/window/hpcc.h"
#include "cc/window/nscc.h"
#include "cc/window/powertcp.h"
#include "cc/window/swift.h"
#include "cc/window/theta_powertcp.h"

namespace paceline::cc {

namespace {

// Built-ins first, then plug-ins; only ever appended to. An entry is complete before the count says
// that it is there.
struct Registry {
  std::array<AlgorithmInfo, kAlgorithms + kMaxPlugins> infos{
      Fixed::info(), Dcqcn::info(),         cadence_info(), Swift::info(),         Timely::info(),
      Dctcp::info(), ThetaPowerTcp::info(), Nscc::info(),   Hpcc::info(),          PowerTcp::info(),
      eqds_info(),   Sird::info(),          Homa::info(),   SwitchNotified::info()};
  std::array<std::unique_ptr<plugin::Plugin>, kMaxPlugins> plugins;
  std::atomic<unsigned> plugin_count{0};
  std::atomic_flag adding;
};

Registry& registry() {
  static Registry the_process;
  return the_process;
}

// Two that add at once are rare, and one is done in no time.
class Adding {
 public:
  explicit Adding(Registry& r) : flag_(r.adding) {
    while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true);
  }
  ~Adding() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;

 private:
  std::atomic_flag& flag_;
};

std::string taken_by(const Registry& r, const AlgorithmInfo& info) {
  const std::string name = "the name '" + std::string(info.name) + "' is ";
  if (!is_plugin(info.id)) return name + "that of a built-in algorithm";
  const std::size_t index = static_cast<unsigned>(info.id) - kAlgorithms;
  return name + "that of a plug-in loaded already, " + r.plugins[index]->path;
}

}  // namespace

std::span<const AlgorithmInfo> algorithms() {
  const Registry& r = registry();
  return {r.infos.data(), kAlgorithms + r.plugin_count.load(std::memory_order_acquire)};
}

const AlgorithmInfo* find(std::string_view name) {
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const AlgorithmInfo* find(AlgorithmId id) {
  const auto at = static_cast<unsigned>(id);
  const std::span<const AlgorithmInfo> all = algorithms();
  return at < all.size() ? &all[at] : nullptr;
}

Registered add_plugin(std::unique_ptr<plugin::Plugin> plugin) {
  Registry& r = registry();
  const Adding alone(r);
  const unsigned count = r.plugin_count.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < count; ++i) {
    if (r.plugins[i]->origin == plugin->origin) return {&r.infos[kAlgorithms + i], {}};
  }
  if (const AlgorithmInfo* other = find(plugin->info.name)) return {nullptr, taken_by(r, *other)};
  if (count == kMaxPlugins) {
    return {nullptr, "there are " + std::to_string(kMaxPlugins) +
                         " plug-ins already, the most there can be"};
  }
  plugin->info.id = static_cast<AlgorithmId>(kAlgorithms + count);
  AlgorithmInfo& info = r.infos[kAlgorithms + count];
  info = plugin->info;
  r.plugins[count] = std::move(plugin);
  r.plugin_count.store(count + 1, std::memory_order_release);
  return {&info, {}};
}

const plugin::Plugin* plugin_of(AlgorithmId id) {
  const unsigned index = static_cast<unsigned>(id) - kAlgorithms;
  const Registry& r = registry();
  if (!is_plugin(id) || index >= r.plugin_count.load(std::memory_order_acquire)) return nullptr;
  return r.plugins[index].get();
}

std::string_view nearest_algorithm(std::string_view name) {
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : algorithms()) names.push_back(info.name);
  return nearest_name(name, names);
}

}  // namespace paceline::cc
