#include "dataplane/driver/scenario/plugin_watch.h"

#include <link.h>
#include <setjmp.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace paceline {

namespace {

constexpr std::size_t kMostNamed = 16;
constexpr unsigned kMostQuietSeconds = 10;  // of all threads together
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPagesOfStack = 16;
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

using Name = std::array<char, 1024>;

void put_name(Name& name, const std::string& text) {
  name[text.copy(name.data(), name.size() - 1)] = '\0';
}

struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  Name path{};
  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
};

// Read by signal handlers. An entry is written before the count that makes it visible, and then
// never changed.
std::array<Code, kMostNamed> named;
std::atomic<std::size_t> named_count{0};
Name loading_path{};
std::atomic<bool> is_loading{false};
std::atomic<unsigned> quiet_seconds{0};
std::atomic<int> open_limits{0};

// Uses only what a signal handler may call.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t n = std::min(text.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, text.data(), n);
    size_ += n;
    return *this;
  }
  Line& operator<<(unsigned number) {
    std::array<char, 10> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << std::string_view(digits.data() + at, digits.size() - at);
  }
  void say() {
    *this << "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_.data(), size_);
  }

 private:
  std::array<char, 1536> text_{};
  std::size_t size_ = 0;
};

const Code* code_with(std::uintptr_t address) {
  const std::size_t count = named_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (named[i].has(address)) return &named[i];
  }
  return nullptr;
}

struct Registers {
  std::uintptr_t code = 0;
  std::uintptr_t stack = 0;
};

Registers place_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {static_cast<std::uintptr_t>(machine.pc), static_cast<std::uintptr_t>(machine.sp)};
#else
  static_cast<void>(machine);
  return {};
#endif
}

// The plug-in from which something was called: a return address into it is on the stack. The kernel
// reads the stack, since it may be what is broken.
const char* caller(std::uintptr_t stack) {
  std::array<std::uintptr_t, kPage / sizeof(std::uintptr_t)> words;
  std::uintptr_t at = stack / sizeof(std::uintptr_t) * sizeof(std::uintptr_t);
  for (std::size_t page = 0; page < kPagesOfStack; ++page) {
    const std::size_t bytes = kPage - at % kPage;
    const iovec to{words.data(), bytes};
    const iovec from{reinterpret_cast<void*>(at), bytes};
    at += bytes;
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) {
      continue;
    }
    for (std::size_t i = 0; i < bytes / sizeof(std::uintptr_t); ++i) {
      if (const Code* code = code_with(words[i])) return code->path.data();
    }
  }
  return nullptr;
}

// The plug-in whose code runs, or from which it was called.
const char* culprit(const Registers& place) {
  if (is_loading.load(std::memory_order_acquire)) return loading_path.data();
  if (const Code* code = code_with(place.code)) return code->path.data();
  return caller(place.stack);
}

// Run by exit(). Then only main's caller is on the stack, unless a plug-in has called exit().
void on_exit() {
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const char* const path = culprit({0, stack});
  if (path == nullptr) return;
  Line line;
  line << program_invocation_short_name << ": error: the plug-in " << path
       << " ended the process: it called exit";
  line.say();
  ::_exit(1);
}

void on_crash(int number, siginfo_t*, void* context) {
  Line line;
  line << program_invocation_short_name << ": error: ";
  if (const char* const path = culprit(place_of(context))) {
    line << "the plug-in " << path << " crashed: signal " << static_cast<unsigned>(number)
         << " in its code, or in what it called";
  } else if (named_count.load(std::memory_order_acquire) != 0) {
    line << "crashed: signal " << static_cast<unsigned>(number) << ", with the plug-in "
         << named[0].path.data()
         << " loaded: one that writes to memory of others does this (`paceline cc check` tries)";
  } else {
    line << "crashed: signal " << static_cast<unsigned>(number);
  }
  line.say();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_second(int, siginfo_t*, void* context) {
  if (quiet_seconds.fetch_add(1, std::memory_order_relaxed) + 1 < kMostQuietSeconds) return;
  const int error = errno;
  if (const char* const path = culprit(place_of(context))) {
    Line line;
    line << program_invocation_short_name << ": error: the plug-in " << path
         << " does not return: " << kMostQuietSeconds << " s of processor time in one call";
    line.say();
    ::_exit(1);
  }
  errno = error;
}

struct sigaction handler_action(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  return action;
}

// A thread whose stack has overflowed has none for the handler.
void give_stack() {
  alignas(16) static thread_local std::array<std::byte, 64 * 1024> room;
  stack_t now{};
  if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  stack_t own{};
  own.ss_sp = room.data();
  own.ss_size = room.size();
  ::sigaltstack(&own, nullptr);
}

void watch_crashes() {
  give_stack();
  static const int kRegistered = std::atexit(on_exit);
  static_cast<void>(kRegistered);
  for (const int number : kCrashes) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) continue;
    if (now.sa_handler != SIG_DFL) continue;
    const struct sigaction ours = handler_action(on_crash);
    ::sigaction(number, &ours, nullptr);
  }
}

int find_code(dl_phdr_info* object, std::size_t, void* into) {
  Code& code = *static_cast<Code*>(into);
  Code found;
  bool here = false;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    const std::uintptr_t end = begin + part.p_memsz;
    here = here || (code.begin >= begin && code.begin < end);
    if ((part.p_flags & PF_X) == 0) continue;
    found.begin = found.end == 0 ? begin : std::min(found.begin, begin);
    found.end = std::max(found.end, end);
  }
  if (!here) return 0;
  code.begin = found.begin;
  code.end = found.end;
  return 1;
}

// State of survives(), and of its thread.
sigjmp_buf* volatile rescue = nullptr;
volatile std::uintptr_t fault_at = 0;

void on_fault(int, siginfo_t* info, void*) {
  fault_at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  siglongjmp(*rescue, 1);
}

}  // namespace

void name_in_crashes(const void* address, const std::string& path) {
  const std::size_t count = named_count.load(std::memory_order_relaxed);
  if (count == kMostNamed) return;
  Code& code = named[count];
  code.begin = reinterpret_cast<std::uintptr_t>(address);
  if (::dl_iterate_phdr(find_code, &code) == 0) return;
  put_name(code.path, path);
  named_count.store(count + 1, std::memory_order_release);
  watch_crashes();
}

PluginLoading::PluginLoading(const std::string& path) {
  put_name(loading_path, path);
  is_loading.store(true, std::memory_order_release);
  watch_crashes();
}

PluginLoading::~PluginLoading() { is_loading.store(false, std::memory_order_release); }

PluginTimeLimit::PluginTimeLimit() {
  give_stack();
  if (open_limits.fetch_add(1) != 0) return;
  passed();
  const struct sigaction ours = handler_action(on_second);
  ::sigaction(SIGPROF, &ours, nullptr);
  const itimerval every{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_PROF, &every, nullptr);
}

PluginTimeLimit::~PluginTimeLimit() {
  if (open_limits.fetch_sub(1) != 1) return;
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
}

void PluginTimeLimit::passed() { quiet_seconds.store(0, std::memory_order_relaxed); }

bool survives(void (*call)(void*), void* context, std::uintptr_t& fault) {
  give_stack();
  constexpr std::array kFaults = {SIGSEGV, SIGBUS};
  std::array<struct sigaction, kFaults.size()> before;
  const struct sigaction ours = handler_action(on_fault);
  sigjmp_buf place;
  rescue = &place;
  for (std::size_t i = 0; i < kFaults.size(); ++i) ::sigaction(kFaults[i], &ours, &before[i]);
  const bool faulted = sigsetjmp(place, 1) != 0;
  if (!faulted) call(context);
  for (std::size_t i = 0; i < kFaults.size(); ++i) ::sigaction(kFaults[i], &before[i], nullptr);
  if (faulted) fault = fault_at;
  return !faulted;
}

}  // namespace paceline
