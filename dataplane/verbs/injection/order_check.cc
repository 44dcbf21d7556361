#include "dataplane/verbs/injection/order_check.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dataplane/attach/injection/fault_plan.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::verbs {

namespace {

constexpr int kGuilty = 3;  // exit status of a program that had 0

}  // namespace

struct OrderCheck::Record {
  alignas(64) attach::OrderWindow window;  // written by the service
  std::string nic;
  pid_t process = ::getpid();  // children that end say nothing
  std::mutex mutex;            // of what follows
  std::uint64_t counted = 0;   // sequence of the last placement that was
  OrderCounts counts;
  std::vector<std::string> examples;
  bool told = false;

  attach::OrderWindow look() const {
    attach::OrderWindow out;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::memcpy(&out, &window, sizeof(out));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const attach::OrderWindow* const again = &window;
    if (static_cast<const volatile attach::OrderWindow*>(again)->sequence != out.sequence) {
      out.sequence = 0;  // it was being written
    }
    return out;
  }
  void tell();
};

void OrderCheck::Record::tell() {
  if (::getpid() != process) return;
  const std::lock_guard hold(mutex);
  if (told) return;
  told = true;
  const attach::OrderWindow seen = look();
  if (seen.held == 0) return;
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  const bool guilty = goes_by_memory(counts);
  std::string text = "order check of " + nic + ": " + number(seen.held) +
                     " placements were held; the program posted during " +
                     number(counts.end_first) + " of the " + number(seen.held_end_first) +
                     " whose end was in memory, and " + number(counts.others) + " of the others";
  if (guilty) {
    text += ": IT GOES BY MEMORY BEFORE COMPLETIONS";
  } else if (seen.held_end_first < 19) {  // the least that goes_by_memory() needs
    text += ": too few to tell";
  } else {
    text += ": no sign that it goes by memory before completions";
  }
  say(text);
  if (!guilty) return;
  for (const std::string& example : examples) say("order check:   " + example);
}

OrderCheck::OrderCheck(std::uint32_t seed, std::string nic)
    : seed_(seed == 0 ? 1 : seed), record_(new Record) {
  record_->nic = std::move(nic);
  ::on_exit(at_exit, record_);
}

OrderCheck::~OrderCheck() { record_->tell(); }

void OrderCheck::at_exit(int status, void* of) {
  auto& record = *static_cast<Record*>(of);
  if (::getpid() != record.process) return;
  record.tell();
  // glibc continues with the remaining handlers, and with the new status.
  if (status == 0 && goes_by_memory(record.counts)) std::exit(kGuilty);
}

void OrderCheck::mark(attach::Extent& extent) const {
  if (extent.kind != attach::ExtentKind::by_copy) return;
  extent.offset = reinterpret_cast<std::uintptr_t>(&record_->window);
  extent.reserved = seed_;
}

bool OrderCheck::acted(attach::OrderWindow& out) {
  out = record_->look();
  if ((out.sequence & 1U) == 0) return false;
  const std::lock_guard hold(record_->mutex);
  if (record_->counted == out.sequence) return false;
  record_->counted = out.sequence;
  ++(out.end_first != 0 ? record_->counts.end_first : record_->counts.others);
  return out.end_first != 0 && record_->examples.size() < kMostExamples;
}

void OrderCheck::note(const attach::OrderWindow& window, const std::string& request) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "placement %llu, %u bytes at 0x%llx, of %s on queue pair 0x%06x: it posted while "
                "these were held",
                static_cast<unsigned long long>(window.held), window.bytes,
                static_cast<unsigned long long>(window.address), request.c_str(), window.qp_number);
  const std::lock_guard hold(record_->mutex);
  record_->examples.emplace_back(text.data());
}

std::unique_ptr<OrderCheck> order_check_of_environment(std::string nic, std::string& error) {
  const char* const text = ::getenv(attach::kReorderVariable);
  if (text == nullptr || *text == '\0') return nullptr;
  std::uint64_t seed = 0;
  if (!attach::parse_count(text, seed)) {
    error = std::string(attach::kReorderVariable) + ": expected a whole number, the seed";
    return nullptr;
  }
  return std::make_unique<OrderCheck>(static_cast<std::uint32_t>(seed), std::move(nic));
}

}  // namespace paceline::verbs
