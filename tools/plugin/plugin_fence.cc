// A plug-in between pages that nobody may touch: what it is given lies once at the end and once at
// the beginning of a page, and what it may only read is read-only. The guard word behind a state,
// which every run has, finds a write right behind it; this finds the others, and reads.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cc/params.h"
#include "cc/plugin/call.h"
#include "cc/registry.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "tools/plugin/plugin_check.h"

namespace paceline::tools {
namespace {

constexpr std::size_t kFence = 1U << 16U;  // bytes before and behind
constexpr std::size_t kAlign = 16;
constexpr std::byte kFiller{0xA5};
constexpr int kRounds = 200;

std::size_t whole_units(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// So many bytes of one kind, with fences.
class Fenced {
 public:
  Fenced(const char* name, std::size_t bytes, bool at_end)
      : name_(name), bytes_(bytes), room_(whole_units(std::max<std::size_t>(bytes, 1), page())) {
    void* const map = ::mmap(nullptr, room_ + 2 * kFence, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<std::byte*>(map);
    if (::mprotect(map_ + kFence, room_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::memset(map_ + kFence, static_cast<int>(kFiller), room_);
    data_ = map_ + kFence + (at_end ? room_ - whole_units(bytes, kAlign) : 0);
    std::memset(data_, 0, bytes);
  }
  ~Fenced() { ::munmap(map_, room_ + 2 * kFence); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void writable(bool yes) const {
    ::mprotect(map_ + kFence, room_, yes ? PROT_READ | PROT_WRITE : PROT_READ);
  }
  // The first byte beside it, on the same page, that is not what it was; 0: none.
  std::uintptr_t damage() const {
    const auto wrong = [](std::byte b) { return b != kFiller; };
    const std::byte* const end = map_ + kFence + room_;
    const std::byte* at = std::find_if<const std::byte*>(map_ + kFence, data_, wrong);
    if (at == data_) at = std::find_if<const std::byte*>(data_ + bytes_, end, wrong);
    return at == end ? 0 : reinterpret_cast<std::uintptr_t>(at);
  }
  bool has(std::uintptr_t address) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(map_);
    return address >= begin && address < begin + room_ + 2 * kFence;
  }
  std::string place(std::uintptr_t address) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(data_);
    if (address < begin) return fmt::format("{} bytes before {}", begin - address, name_);
    if (address < begin + bytes_) return fmt::format("{}, which is only to be read", name_);
    return fmt::format("{} bytes behind the end of {}", address - begin - bytes_, name_);
  }

 private:
  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

  const char* name_;
  std::size_t bytes_;
  std::size_t room_;
  std::byte* map_ = nullptr;
  std::byte* data_ = nullptr;
};

// A context of the plug-in, and the calls that a connection makes.
class FencedContext {
 public:
  FencedContext(const cc::plugin::Plugin& plugin, bool at_end)
      : table_(plugin.table),
        state_("its state", table_.state_bytes, at_end),
        derived_("its constants", derived_bytes(), at_end),
        event_("the event", sizeof(paceline_cc_event), at_end),
        decision_("the decision", sizeof(paceline_cc_decision), at_end),
        item_("the item", sizeof(paceline_cc_item), at_end) {
    cc::PortFacts facts;
    facts.link_rate = rate_from_gbps(100);
    facts.full_packet_bytes = 4178;
    facts.base_rtt_ns = 5000;
    const auto values = cc::resolve_params(plugin.info, "", {}, facts);
    const cc::plugin::PluginParams params =
        cc::plugin::make_params(plugin, std::get<std::vector<double>>(values), facts);
    std::memcpy(derived_.as<std::byte>(), params.derived, derived_bytes());
    derived_.writable(false);
    *item_.as<paceline_cc_item>() = {state_.as<void>(), derived_.as<void>(),
                                     event_.as<paceline_cc_event>(),
                                     decision_.as<paceline_cc_decision>()};
    item_.writable(false);
    paceline_cc_decision& d = *decision_.as<paceline_cc_decision>();
    d.window_bytes = d.ceiling = d.wake_bytes = PACELINE_CC_UNLIMITED;
    d.wake_at_ns = PACELINE_CC_NEVER;
    d.limiter = PACELINE_CC_LIMIT_PATH;
  }

  void run() {
    call(PACELINE_CC_START);
    for (int i = 0; i < kRounds; ++i) {
      for (const auto signal :
           {PACELINE_CC_MESSAGE, PACELINE_CC_TICK, PACELINE_CC_ACK, PACELINE_CC_ACK,
            PACELINE_CC_CNP, PACELINE_CC_NACK, PACELINE_CC_TIMEOUT, PACELINE_CC_PORT_DOWN,
            PACELINE_CC_PORT_UP, PACELINE_CC_IDLE}) {
        const bool wanted = (table_.wants & PACELINE_CC_WANT(signal)) != 0;
        if (wanted || signal == PACELINE_CC_TICK) call(signal);
      }
      PluginTimeLimit::passed();
    }
  }

  std::string damage() const {
    for (const Fenced* part : parts()) {
      if (const std::uintptr_t at = part->damage(); at != 0) return part->place(at);
    }
    return {};
  }
  std::string place(std::uintptr_t address) const {
    for (const Fenced* part : parts()) {
      if (part->has(address)) return part->place(address);
    }
    return fmt::format("address {:#x}, which is nothing that it was given", address);
  }

 private:
  std::array<const Fenced*, 5> parts() const {
    return {&state_, &derived_, &event_, &decision_, &item_};
  }
  std::size_t derived_bytes() const {
    return table_.derive != nullptr ? table_.derived_bytes : table_.param_count * sizeof(double);
  }

  void call(unsigned signal) {
    event_.writable(true);
    paceline_cc_event& e = *event_.as<paceline_cc_event>();
    e.now_ns += 5000;
    e.sent_bytes = signal == PACELINE_CC_START ? 0 : 4178;
    e.sent_total += e.sent_bytes;
    e.backlog_bytes = signal == PACELINE_CC_IDLE ? 0 : 1'000'000;
    e.inflight_bytes = 20'000;
    e.message_bytes = signal == PACELINE_CC_MESSAGE ? 100'000 : 0;
    e.acked_bytes = signal == PACELINE_CC_ACK ? 4178 : 0;
    e.marked_bytes = e.acked_bytes / 2;
    e.lost_bytes = signal == PACELINE_CC_NACK || signal == PACELINE_CC_TIMEOUT ? 4178 : 0;
    e.rtt_ns = signal == PACELINE_CC_ACK ? 7000 : 0;
    e.signal = static_cast<std::uint8_t>(signal);
    event_.writable(false);
    table_.on_events(item_.as<const paceline_cc_item>(), 1);
  }

  const paceline_cc_algorithm& table_;
  Fenced state_;
  Fenced derived_;
  Fenced event_;
  Fenced decision_;
  Fenced item_;
};

}  // namespace

std::string out_of_bounds(const cc::plugin::Plugin& plugin) {
  if (plugin.table.on_events == nullptr) return {};
  const PluginTimeLimit limit;
  for (const bool at_end : {true, false}) {
    FencedContext context(plugin, at_end);
    std::uintptr_t fault = 0;
    const bool survived =
        survives([](void* c) { static_cast<FencedContext*>(c)->run(); }, &context, fault);
    if (!survived) return "it touches memory that is not its own: " + context.place(fault);
    if (const std::string where = context.damage(); !where.empty()) {
      return "it writes outside the memory that it is given: " + where;
    }
  }
  return {};
}

std::vector<std::string> plugins_out_of_bounds() {
  std::vector<std::string> errors;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const cc::plugin::Plugin* const plugin = cc::plugin_of(info.id);
    if (plugin == nullptr) continue;
    if (const std::string problem = out_of_bounds(*plugin); !problem.empty()) {
      errors.push_back(fmt::format("the plug-in {}: {}", plugin->path, problem));
    }
  }
  return errors;
}

}  // namespace paceline::tools
