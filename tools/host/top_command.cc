// `paceline top`: what the NICs, peers and queue pairs of a running service do, refreshed in the
// terminal. It reads the service's segment; the service is asked nothing but where that is.

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "dataplane/service/control_protocol.h"
#include "tools/cli.h"
#include "tools/host/host_look.h"
#include "tools/host/top_screen.h"
#include "tools/runtime_folder.h"

namespace paceline::tools {

namespace {

struct TopOptions {
  std::string name = kDefaultTestbed;
  std::string socket;
  double interval = 1.0;
  std::string table = "peers";
  bool once = false;
  bool json = false;
};

// Keys come one by one and are not shown, as long as it lives; the screen is another one.
class RawTerminal {
 public:
  RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    fmt::print("\x1b[?1049h\x1b[?25l");
    std::fflush(stdout);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    fmt::print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
  }

 private:
  termios before_{};
  bool changed_ = false;
};

// 0: nothing was pressed within the time.
char key_within(double seconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, std::max(0, static_cast<int>(seconds * 1000))) <= 0) return 0;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}

void fit_terminal(TopView& view) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 && size.ws_row != 0) {
    view.width = size.ws_col;
    view.height = size.ws_row;
  }
}

TopTable table_of(const std::string& name) {
  return name == "nics"    ? TopTable::nics
         : name == "peers" ? TopTable::peers
                           : TopTable::queue_pairs;
}

int lost(const std::string& wrong) {
  fmt::print(stderr, "paceline: error: {}\n", wrong);
  return kExitFailed;
}

// One span, then text or JSON.
int show_once(HostLook& look, const TopOptions& options) {
  HostSample before;
  HostSample now;
  if (const std::string wrong = look.take(before); !wrong.empty()) return lost(wrong);
  const double begin = wall_seconds();
  while (wall_seconds() - begin < options.interval && !Interrupt::flag()) {
    ::poll(nullptr, 0, 20);
  }
  if (Interrupt::flag()) return kExitInterrupted;
  if (const std::string wrong = look.take(now); !wrong.empty()) return lost(wrong);
  const TopRows rows = top_rows(before, now, wall_seconds() - begin);
  TopView view;
  view.table = table_of(options.table);
  view.width = 0;
  if (options.json) {
    fmt::print("{}\n", top_json(rows));
  } else {
    fmt::print("{}", top_text(rows, view));
  }
  return kExitGood;
}

// What is on the screen, and what keys make of it.
struct TopState {
  TopView view;
  bool stopped = false;
  bool done = false;

  void press(char key) {
    switch (key) {
      case 'q':
      case 3:
        done = true;
        break;
      case 'n':
        view.table = TopTable::nics;
        break;
      case 'p':
        view.table = TopTable::peers;
        break;
      case 'c':
        view.table = TopTable::queue_pairs;
        break;
      case ' ':
        stopped = !stopped;
        break;
      case 'j':
        ++view.first;
        break;
      case 'k':
        view.first -= view.first > 0 ? 1 : 0;
        break;
      default:
        break;
    }
  }
};

// What went wrong, empty: nothing.
std::string show_again_and_again(HostLook& look, const TopOptions& options) {
  RawTerminal terminal;
  TopState state;
  state.view.table = table_of(options.table);
  state.view.keys = true;
  HostSample before;
  TopRows rows;
  double last = 0;
  std::string wrong;
  while (!state.done && !Interrupt::flag()) {
    const double time = wall_seconds();
    if (!state.stopped && time - last >= options.interval) {
      HostSample now;
      wrong = look.take(now);
      if (!wrong.empty()) break;
      rows = top_rows(before, now, time - last);
      before = std::move(now);
      last = time;
    }
    fit_terminal(state.view);
    fmt::print("\x1b[H\x1b[2J{}", top_text(rows, state.view));
    std::fflush(stdout);
    state.press(key_within(std::clamp(options.interval - (wall_seconds() - last), 0.05, 1.0)));
  }
  return wrong;
}

int run(const TopOptions& options) {
  if (!(options.interval >= 0.05 && options.interval <= 3600)) {
    return report_errors({"--interval: allowed are 0.05 to 3600 seconds"});
  }
  const std::string attach = options.socket.empty() ? service_socket(options.name) : options.socket;
  HostLook look;
  if (const std::string wrong = look.open(service::control_socket_beside(attach)); !wrong.empty()) {
    fmt::print(stderr,
               "paceline: error: no service answers at {} ({}). Start one:\n"
               "  paceline testbed up configs/testbeds/pair.toml\n",
               service::control_socket_beside(attach), wrong);
    return kExitFailed;
  }
  const Interrupt interrupt;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
  if (options.once || options.json || !terminal) return show_once(look, options);
  const std::string wrong = show_again_and_again(look, options);
  return wrong.empty() ? kExitGood : lost(wrong);
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "top", "Watch a running service: NICs, peers, queue pairs, and what limits them");
  auto options = std::make_shared<TopOptions>();
  command->add_option("--name", options->name, "of the testbed, where there are several")
      ->capture_default_str();
  command->add_option("--socket", options->socket,
                      "where programs attach to the service, instead of the place that follows "
                      "from the name");
  command->add_option("--interval", options->interval, "seconds between two looks")
      ->capture_default_str();
  command->add_option("--table", options->table, "below the NICs: nics (nothing), peers, pairs")
      ->check(CLI::IsMember({"nics", "peers", "pairs"}))
      ->capture_default_str();
  command->add_flag("--once", options->once, "print the rates of one interval, and end");
  command->add_flag("--json", options->json, "the same for machines");
  command->footer(
      "Rates are of payload. 'allowed' is what congestion control permits, 'limited by' the bound\n"
      "that held most of the time: application (nothing to send), grant, uplink, path, window,\n"
      "credit or port. 'p99' is the slowdown of messages up to 1 MiB.\n"
      "Examples:\n"
      "  paceline top\n"
      "  paceline top --once --table pairs\n"
      "  paceline top --json --interval 5 | jq '.nics[] | {name, tx_bps, limited}'\n"
      "Exit status: 0 good, 1 no service, 2 bad input.");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
