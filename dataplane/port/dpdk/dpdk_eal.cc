#include "dataplane/port/dpdk/dpdk_eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>

namespace paceline {

// Takes DPDK's log. Written to by any of its threads.
class EalLog {
 public:
  EalLog() {
    cookie_io_functions_t functions{};
    functions.write = [](void* self, const char* text, std::size_t size) -> ssize_t {
      static_cast<EalLog*>(self)->add({text, size}, rte_log_cur_msg_loglevel());
      return static_cast<ssize_t>(size);
    };
    stream_ = fopencookie(this, "w", functions);
    if (stream_ != nullptr) {
      // A message is one write, so that its level is the one of its text.
      std::setvbuf(stream_, nullptr, _IOLBF, kLongestLine);
      rte_openlog_stream(stream_);
    }
  }
  ~EalLog() {
    if (stream_ == nullptr) return;
    rte_openlog_stream(nullptr);
    std::fclose(stream_);
  }
  EalLog(const EalLog&) = delete;
  EalLog& operator=(const EalLog&) = delete;

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> lines(lines_.begin(), lines_.end());
    lines_.clear();
    return lines;
  }

 private:
  static constexpr std::size_t kLongestLine = 1024;
  static constexpr std::size_t kMostLines = 64;

  void add(std::string_view text, int level) {
    if (level < 0 || level > static_cast<int>(RTE_LOG_WARNING)) return;
    const std::lock_guard lock(mutex_);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      if (!line.empty()) lines_.emplace_back(line);
      if (lines_.size() > kMostLines) lines_.pop_front();
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }

  std::FILE* stream_ = nullptr;
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

namespace {

// The processors that a thread may use now, in EAL's syntax: lcore 0 on all of them.
std::string lcores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "0@0";
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) continue;
    if (!list.empty()) list += ',';
    list += std::to_string(cpu);
  }
  return "0@(" + list + ")";
}

std::uint64_t physical_mb() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes) >> 20;
}

}  // namespace

std::vector<std::string> eal_arguments(const EalSettings& s, std::string& error) {
  error.clear();
  const auto refuse = [&error](std::string why) {
    error = std::move(why);
    return std::vector<std::string>{};
  };
  if (s.no_huge && s.in_memory) {
    return refuse("in_memory is about hugepages and no_huge means none: choose one");
  }
  if (s.in_memory && !s.file_prefix.empty()) {
    return refuse("in_memory means no files: file_prefix = \"" + s.file_prefix +
                  "\" cannot be kept");
  }
  if (s.no_huge && s.memory_mb < 64) {
    return refuse("memory_mb = " + std::to_string(s.memory_mb) + ": allowed is 64 or more");
  }
  // EAL takes more than there is and fails when it is touched.
  if (s.memory_mb > physical_mb()) {
    return refuse("memory_mb = " + std::to_string(s.memory_mb) + ": the machine has " +
                  std::to_string(physical_mb()));
  }
  if (s.lcores.find_first_not_of("0123456789@(),-") != std::string::npos) {
    return refuse("lcores = \"" + s.lcores +
                  "\": expected lcores and processors as in \"0@0,1@(2-3)\"");
  }
  if (s.file_prefix.find_first_of(" \t\n/") != std::string::npos) {
    return refuse("file_prefix = \"" + s.file_prefix + "\": no spaces or slashes allowed");
  }

  // Every value is joined to its option by "=", so that none can be taken for an option.
  std::vector<std::string> a{s.program};
  a.emplace_back("--no-telemetry");
  a.push_back("--lcores=" + (s.lcores.empty() ? lcores_of_this_thread() : s.lcores));
  if (s.no_huge) {
    a.emplace_back("--no-huge");
    a.push_back("-m" + std::to_string(s.memory_mb));
    a.push_back(s.file_prefix.empty() ? "--no-shconf" : "--file-prefix=" + s.file_prefix);
  } else {
    a.push_back(s.file_prefix.empty() ? "--in-memory" : "--file-prefix=" + s.file_prefix);
    if (s.memory_mb != 0) a.push_back("-m" + std::to_string(s.memory_mb));
  }
  if (s.pci_allow.empty()) a.emplace_back("--no-pci");
  for (const std::string& address : s.pci_allow) a.push_back("--allow=" + address);
  for (const std::string& vdev : s.vdevs) a.push_back("--vdev=" + vdev);
  return a;
}

EalStart Eal::start(const EalSettings& settings) {
  std::string error;
  std::vector<std::string> arguments = eal_arguments(settings, error);
  if (arguments.empty()) return {nullptr, "EAL: " + error};
  // EAL permutes the pointers and keeps copies of the texts.
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  auto log = std::make_unique<EalLog>();
  if (rte_eal_init(static_cast<int>(arguments.size()), argv.data()) < 0) {
    const std::string why = rte_strerror(rte_errno);
    std::string said;
    for (const std::string& line : log->take()) said += "; " + line;
    std::string given;
    for (const std::string& argument : eal_arguments(settings, error)) given += " " + argument;
    return {nullptr, "EAL: " + why + said + "; started as" + given};
  }
  return {std::unique_ptr<Eal>(new Eal(std::move(log), settings.no_huge)), ""};
}

Eal::Eal(std::unique_ptr<EalLog> log, bool no_huge) : log_(std::move(log)), no_huge_(no_huge) {}

Eal::~Eal() {
  if (gate_ != nullptr) gate_->close_for_good();
  rte_eal_cleanup();
}

InterruptGate* Eal::gate() {
  if (gate_ == nullptr) gate_ = InterruptGate::make();
  return gate_;
}

std::vector<std::string> Eal::take_warnings() { return log_->take(); }

std::string_view Eal::iova_mode() const { return rte_eal_iova_mode() == RTE_IOVA_PA ? "PA" : "VA"; }

LcoreRegistration::LcoreRegistration()
    : registered_(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}

LcoreRegistration::~LcoreRegistration() {
  if (registered_) rte_thread_unregister();
}

}  // namespace paceline
