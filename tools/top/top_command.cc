// `paceline top`: what the NICs, peers and queue pairs of a running service do, refreshed in the
// terminal. It reads the service's segment. It asks the service itself only where the segment is
// and, if the fabric is emulated, once per look for the queues of the switches.

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dataplane/base/text/printable.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"
#include "tools/top/fabric_look.h"
#include "tools/top/host_look.h"
#include "tools/top/top_screen.h"

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

extern "C" void on_resize(int) {}  // poll() returns

// As long as it lives, keys come one by one and are not shown; the screen is a separate one,
// without a cursor, on which long lines are cut. A suspended program would leave it so: Ctrl-Z is
// disabled.
class RawTerminal {
 public:
  RawTerminal() {
    struct sigaction resize {};
    resize.sa_handler = on_resize;
    ::sigaction(SIGWINCH, &resize, &resize_before_);
    if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      raw.c_cc[VSUSP] = _POSIX_VDISABLE;
      changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    fmt::print("\x1b[?1049h\x1b[?25l\x1b[?7l");
    std::fflush(stdout);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    fmt::print("\x1b[?7h\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    ::sigaction(SIGWINCH, &resize_before_, nullptr);
  }

 private:
  termios before_{};
  struct sigaction resize_before_ {};
  bool changed_ = false;
};

// 0: no key was pressed within the time, or a signal came. 'q' if the terminal is gone.
char key_within(double seconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, std::max(0, static_cast<int>(seconds * 1000))) <= 0) return 0;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

// https://no-color.org: any text in NO_COLOR means none.
bool wants_colour() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return ::isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string time_of_day() { return fmt::format("{:%H:%M:%S}", fmt::localtime(std::time(nullptr))); }

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

std::string attach_socket(const TopOptions& options) {
  return socket_to_reach(options.name, options.socket);
}

// Nothing if it is not available: the rest is worth showing.
FabricLook ask_fabric(const TopOptions& options) {
  const ServiceStatus got = service_status(attach_socket(options));
  return got.error.empty() ? fabric_look(nlohmann::json::parse(got.json, nullptr, false))
                           : FabricLook{};
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
  TopRows rows = top_rows(before, now, wall_seconds() - begin);
  rows.fabric = ask_fabric(options);
  TopView view;
  view.table = table_of(options.table);
  view.interval = options.interval;
  view.clock = time_of_day();
  view.colour = wants_colour();
  if (options.json) {
    fmt::print("{}\n", top_json(rows));
  } else {
    fmt::print("{}", top_text(rows, view));
  }
  return kExitGood;
}

// State of the screen, and its changes by keys.
struct TopState {
  TopView view;
  bool done = false;

  void show(TopTable table) {
    view.table = table;
    view.first = 0;
  }
  void press(char key) {
    switch (key) {
      case 'q':
      case 3:
        done = true;
        break;
      case 'n':
        show(TopTable::nics);
        break;
      case 'p':
        show(TopTable::peers);
        break;
      case 'c':
        show(TopTable::queue_pairs);
        break;
      case ' ':
        view.stopped = !view.stopped;
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

// The last row there is to scroll to.
std::size_t rows_below(const TopRows& rows, TopTable table) {
  const std::size_t count = table == TopTable::nics    ? rows.nics.size()
                            : table == TopTable::peers ? rows.peers.size()
                                                       : rows.queue_pairs.size();
  return count - std::min<std::size_t>(count, 1);
}

// Overwrites the screen, without a line end behind the last line, which would scroll.
void draw(const std::vector<std::string>& lines) {
  std::string screen = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    screen += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  }
  fmt::print("{}\x1b[J", screen);
  std::fflush(stdout);
}

// Returns an error, or an empty text.
std::string show_again_and_again(HostLook& look, const TopOptions& options) {
  RawTerminal terminal;
  TopState state;
  state.view.table = table_of(options.table);
  state.view.keys = true;
  state.view.interval = options.interval;
  state.view.colour = wants_colour();
  HostSample before;
  TopRows rows;
  double last = 0;
  std::string wrong;
  while (!state.done && !Interrupt::flag()) {
    const double time = wall_seconds();
    if (!state.view.stopped && time - last >= options.interval) {
      HostSample now;
      wrong = look.take(now);
      if (!wrong.empty()) break;
      rows = top_rows(before, now, time - last);
      rows.fabric = ask_fabric(options);
      before = std::move(now);
      last = time;
      state.view.clock = time_of_day();
    }
    fit_terminal(state.view);
    state.view.first = std::min(state.view.first, rows_below(rows, state.view.table));
    draw(top_lines(rows, state.view));
    state.press(key_within(std::clamp(options.interval - (wall_seconds() - last), 0.05, 1.0)));
  }
  return wrong;
}

int run(const TopOptions& options) {
  const std::string attach = attach_socket(options);
  HostLook look;
  const std::string control = service::control_socket_beside(attach);
  int code = 0;
  if (const std::string wrong = look.open(control, code); !wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n",
               printable_lines(service_absence(control, code == ETIMEDOUT ? code : 0, wrong,
                                               options_to_start(options.name, attach))));
    return kExitFailed;
  }
  const Interrupt interrupt;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
  if (options.once || options.json || !terminal) return show_once(look, options);
  const std::string wrong = show_again_and_again(look, options);
  return wrong.empty() ? kExitGood : lost(wrong);
}

}  // namespace

void add_top_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "top", "Watch a running service: NICs, peers, queue pairs, and what limits them");
  auto options = std::make_shared<TopOptions>();
  command.option("--name", options->name, "name of the testbed, if there are several")
      .shows_default();
  command.option("--socket", options->socket,
                 "socket on which programs attach, instead of the one that follows from "
                 "the name");
  command.option("--interval", options->interval, "seconds between two samples")
      .within(0.05, 3600.0)
      .shows_default();
  command.option("--table", options->table, "table below the NICs: nics (none), peers or pairs")
      .one_of({"nics", "peers", "pairs"})
      .shows_default();
  command.flag("--once", options->once, "print the rates of one interval, and end");
  command.flag("--json", options->json, "print the same as JSON");
  command.footer(
      "Rates are of payload. 'allowed' is what congestion control permits, 'limited by' the bound\n"
      "that held most of the time: application (nothing to send), grant, uplink, path, window,\n"
      "credit or port. 'p99' is the slowdown of messages up to 1 MiB, 'queue' the bytes that wait\n"
      "in front of the host in an emulated fabric. A narrow terminal shows fewer columns; --once\n"
      "shows all.\n"
      "Colours are used on terminals only, and not if NO_COLOR is set.\n"
      "Examples:\n"
      "  paceline top\n"
      "  paceline top --once --table pairs\n"
      "  paceline top --json --interval 5 | jq '.nics[] | {name, tx_bps, limited}'\n"
      "Exit status: 0 good, 1 no service, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
