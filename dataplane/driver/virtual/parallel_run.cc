#include "dataplane/driver/virtual/parallel_run.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

namespace paceline {

namespace {

// Events of the first part between two calls of the progress callback, at least.
constexpr std::uint64_t kProgressEvents = 1 << 16;
// A window in which fewer events are to be expected is worked off by one thread: to wait for one
// another would take longer.
constexpr std::uint64_t kWorthSharing = 128;
// The same where windows are worked off node by node: a visit that finds one event costs more than
// the event queue.
constexpr std::uint64_t kWorthSweeping = 64;
// Events over which it is found out how close together they are.
constexpr std::uint64_t kPaceEvents = 2048;

double cpu_seconds() {
  std::timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Sender, receiver and lane, and the start of a message there that waits for no other.
struct Opening {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint32_t lane = 0;
  Picos start{0};
  auto operator<=>(const Opening&) const = default;
  bool same_lane(const Opening& o) const { return src == o.src && dst == o.dst && lane == o.lane; }
};

// When hosts may have to connect for messages that wait for no other: at the first message of a
// lane; where idle queue pairs are taken, at any. Ascending.
std::vector<Opening> openings_of(const MessagePlan& plan) {
  std::vector<Opening> out;
  if (plan.connected) return out;
  for (const PlannedMessage& m : plan.messages) {
    if (m.after == kNoMessage && !m.computes && !m.nvlink)
      out.push_back({m.src, m.dst, m.lane, m.start});
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end(),
                        [](const Opening& a, const Opening& b) {
                          return a.same_lane(b) && a.lane != kNoMessage;
                        }),
            out.end());
  return out;
}

}  // namespace

std::string ParallelRun::obstacle(const MessagePlan& plan, Picos nvlink_latency) {
  const std::vector<Opening> openings = openings_of(plan);
  for (const PlannedMessage& m : plan.messages) {
    if (m.nvlink && nvlink_latency.count == 0) {
      return "messages over NVLink without latency are felt at two hosts at once";
    }
    if (m.after == kNoMessage || m.computes || m.nvlink || plan.connected) continue;
    const Opening wanted{m.src, m.dst, m.lane, Picos{0}};
    const auto found = std::lower_bound(openings.begin(), openings.end(), wanted);
    if (m.lane == kNoMessage || found == openings.end() || !found->same_lane(wanted)) {
      return "messages that wait for others open connections of their own";
    }
  }
  return {};
}

ParallelRun::ParallelRun(std::vector<std::unique_ptr<WorldPart>>& parts,
                         const fabric::FabricSpec& spec, const fabric::Division& division,
                         Slab<WorldHost>& hosts, const MessagePlan& plan, Options options)
    : parts_(parts),
      hosts_(hosts),
      plan_(plan),
      division_(division),
      options_(std::move(options)),
      lookahead_(division.lookahead),
      to_send_(hosts.size()),
      shares_(parts.size()),
      barrier_(static_cast<std::uint32_t>(parts.size())) {
  if (options_.sweep) {  // every link is one between nodes that are worked off one after another
    for (std::uint32_t link = 0; link < spec.links.size(); ++link) {
      lookahead_ = earlier(lookahead_, fabric::shortest_delay(spec, 2 * link));
    }
    for (auto& part : parts_) part->prepare_sweeps();
  }
  if (options_.sample) next_sample_ = options_.sample_interval;
  // has_unsent: what is sent in a window is acknowledged after it, for it passes a host's link four
  // times.
  for (std::uint32_t link = 0; link < spec.links.size(); ++link) {
    if (spec.links[link].a >= spec.hosts && spec.links[link].b >= spec.hosts) continue;
    lookahead_ = earlier(lookahead_, fabric::shortest_delay(spec, 2 * link) * 4);
  }
  for (const PlannedMessage& m : plan.messages) {
    bytes_total_ += m.bytes;
    if (m.nvlink) {
      carries_ = true;
      lookahead_ = earlier(lookahead_, options_.nvlink_latency);
    } else {
      to_send_[m.src] += m.bytes;
    }
  }
  for (const Opening& opening : openings_of(plan)) connections_.push_back(opening.start);
  std::sort(connections_.begin(), connections_.end());
  connections_.erase(std::unique(connections_.begin(), connections_.end()), connections_.end());
  for (std::uint32_t host = 0; host < hosts.size(); ++host) {
    shares_[division.part_of_node[host]].hosts.push_back(host);
  }
  for (Share& share : shares_) {
    for (auto& lists : share.away) lists.resize(parts.size());
    for (auto& lists : share.nvlink) lists.resize(parts.size());
  }
}

ParallelRun::End ParallelRun::run() {
  const auto parts = static_cast<std::uint32_t>(parts_.size());
  for (std::uint32_t part = 0; part < parts; ++part) open_lists(part, 1);
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
    parts_[division_.part_of_node[host]]->begin(host);
  }
  for (std::uint32_t part = 0; part < parts; ++part) report(part, 1, Picos{0});
  shares_[0].reports[0].is_over = shares_[0].reports[0].finished == plan_.messages.size();
  std::vector<std::thread> threads;
  for (std::uint32_t part = 1; part < parts; ++part) {
    threads.emplace_back([this, part] { work(part); });
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (Share& share : shares_) {
    if (share.problem) std::rethrow_exception(share.problem);
    use_.threads.push_back(share.use);
  }
  return end_;
}

// The next window, from what all parts reported at the end of the last: every thread comes to the
// same. place: each thread's own.
ParallelRun::Window ParallelRun::decide(std::uint64_t window, Place& place) const {
  Report all;
  for (const Share& share : shares_) {
    const Report& report = share.reports[window & 1];
    all.next = earlier(all.next, report.next);
    all.finished += report.finished;
    all.events += report.events;
    all.unsent = all.unsent || report.unsent;
    all.failed = all.failed || report.failed;
    all.stop = all.stop || report.stop;
    all.is_over = all.is_over || report.is_over;
  }
  Window out;
  out.over = true;
  if (all.is_over) return out;
  if (all.failed || all.finished == plan_.messages.size()) {
    out.how = End::misjudged;
  } else if (all.stop) {
    out.how = End::stopped;
  } else if (all.next == kNever) {
    out.how = End::stalled;
  } else if (all.next > options_.duration) {
    out.how = End::duration;
  } else {
    out.over = false;
  }
  if (out.over) return out;

  out.begin = all.next;
  out.end =
      earlier(saturating_add(all.next, lookahead_), saturating_add(options_.duration, Picos{1}));
  if (all.events - place.events >= kPaceEvents) {
    place.pace = (all.next - place.time) / static_cast<std::int64_t>(all.events - place.events);
    place.events = all.events;
    place.time = all.next;
  }
  const Picos least =
      place.pace * static_cast<std::int64_t>(options_.sweep ? kWorthSweeping : kWorthSharing);
  std::size_t& next = place.connection;
  while (next < connections_.size() && connections_[next] < all.next) ++next;
  const Picos connection = next < connections_.size() ? connections_[next] : kNever;
  const bool too_few = !all.unsent || least > lookahead_;
  const bool connects = connection < out.end;
  out.alone = too_few || (connects && connection - all.next <= least);
  if (!out.alone) {
    out.end = earlier(out.end, connection);
  } else if (parts_.size() == 1) {  // for as long as it likes: nobody waits
    const Picos span = all.unsent ? place.pace * static_cast<std::int64_t>(kPaceEvents) : kNever;
    out.end = earlier(later(out.end, saturating_add(all.next, span)),
                      saturating_add(options_.duration, Picos{1}));
  } else if (!too_few) {
    out.end = connection + Picos{1};
  }
  return out;
}

void ParallelRun::work(std::uint32_t index) {
  using Clock = std::chrono::steady_clock;
  Share& share = shares_[index];
  const double begin = cpu_seconds();
  Clock::duration waited{0};
  Place place;
  std::uint64_t progress_at = kProgressEvents;
  for (std::uint64_t window = 0;; ++window) {
    Window next = decide(window, place);
    if (next.over) {
      if (index == 0) end_ = next.how;
      break;
    }
    if (next_sample_ != kNever) {
      sample_until_next_event();
      next.end = earlier(next.end, next_sample_);
    }
    if (!next.alone) {
      run_window(index, window, next);
    } else if (index == 0) {
      run_alone(window, next.end);
    }
    if (index == 0) {
      ++use_.windows;
      if (next.alone) ++use_.windows_alone;
      if (options_.progress && parts_[0]->events() >= progress_at) {
        progress_at = parts_[0]->events() + kProgressEvents;
        std::uint64_t done = 0;
        for (const Share& s : shares_) done += s.reports[window & 1].bytes_done;
        if (bytes_total_ != 0) {
          options_.progress(static_cast<double>(done) / static_cast<double>(bytes_total_));
        }
      }
    }
    const auto before = Clock::now();
    barrier_.wait();
    waited += Clock::now() - before;
  }
  share.use.cpu_seconds = cpu_seconds() - begin;
  share.use.waiting_seconds = std::chrono::duration<double>(waited).count();
  share.use.events = parts_[index]->events();
}

// Every thread its own part. What is thrown ends the run; the parts are then in no usable state.
void ParallelRun::run_window(std::uint32_t part, std::uint64_t window, const Window& of) {
  Share& share = shares_[part];
  WorldPart& own = *parts_[part];
  share.alone = false;
  try {
    take_in(part, window);
    open_lists(part, window);
    Picos leaving = kNever;
    if (own.sweeps()) {
      leaving = own.sweep(of.begin, of.end);
    } else {
      std::uint64_t budget = ~std::uint64_t{0};
      own.work(of.end, ~std::uint64_t{0}, budget);
    }
    report(part, window, of.end, leaving);
  } catch (const NotAlone&) {
    share.reports[(window + 1) & 1].failed = true;
  } catch (...) {
    share.problem = std::current_exception();
    share.reports[(window + 1) & 1].failed = true;
  }
}

// One thread for all parts, in the order of one world; the others wait. Stops with the last
// message.
void ParallelRun::run_alone(std::uint64_t window, Picos end) {
  const auto parts = static_cast<std::uint32_t>(parts_.size());
  std::uint64_t finished = 0;
  bool over = false;
  std::pair<Picos, std::uint32_t> last{Picos{0}, 0};
  try {
    for (std::uint32_t part = 0; part < parts; ++part) {
      take_in(part, window);
      open_lists(part, window);
      finished += parts_[part]->finished().size();
      shares_[part].alone = true;
    }
    if (parts == 1) end = work_single(end, over);
    while (parts != 1) {
      std::uint32_t first = parts;
      Picos time = end;
      std::uint32_t actor = 0;
      for (std::uint32_t part = 0; part < parts; ++part) {
        std::uint32_t candidate = 0;
        const Picos at = parts_[part]->wheel().next_time(candidate);
        if (at >= end || std::pair(at, candidate) >= std::pair(time, actor)) continue;
        first = part;
        time = at;
        actor = candidate;
      }
      // Agendas of link events that several parts run at one time under one number are one event.
      if (first == parts || (over && last != std::pair(time, actor))) break;
      last = {time, actor};
      WorldPart& own = *parts_[first];
      finished -= own.finished().size();
      std::uint64_t budget = 1;
      own.work(end, ~std::uint64_t{0}, budget);
      finished += own.finished().size();
      ++use_.events_alone;
      over = finished == plan_.messages.size();
    }
    for (std::uint32_t part = 0; part < parts; ++part) {
      WorldPart& own = *parts_[part];
      const bool settle = own.sweeps() && !over;
      report(part, window, over ? Picos{0} : end,
             settle ? own.network().sweep().settle(end - Picos{1}) : kNever);
    }
    shares_[0].reports[(window + 1) & 1].is_over = over;
  } catch (const NotAlone&) {
    shares_[0].reports[(window + 1) & 1].failed = true;
  } catch (...) {
    shares_[0].problem = std::current_exception();
    shares_[0].reports[(window + 1) & 1].failed = true;
  }
}

// The same with one part: until `end`, or until it is time to check whether the run is to stop.
// Returns the time before which everything has happened.
Picos ParallelRun::work_single(Picos end, bool& over) {
  WorldPart& own = *parts_[0];
  std::uint64_t budget = kProgressEvents;
  const WorldPart::Pause pause = own.work(end, plan_.messages.size(), budget);
  use_.events_alone += kProgressEvents - budget;
  over = pause == WorldPart::Pause::finished;
  return pause == WorldPart::Pause::budget ? earlier(end, own.wheel().next_time()) : end;
}

// A look at the world that is due before anything else happens in it, unless nothing does.
void ParallelRun::sample_until_next_event() {
  for (;;) {
    const Picos event = parts_[0]->wheel().next_time();
    if (event == kNever || event > options_.duration || event < next_sample_) return;
    options_.sample(next_sample_);
    next_sample_ += options_.sample_interval;
  }
}

void ParallelRun::take_in(std::uint32_t part, std::uint64_t window) {
  for (const Share& from : shares_) {
    parts_[part]->network().take_in(from.away[window & 1][part]);
    if (!carries_) continue;
    for (const Carried& carried : from.nvlink[window & 1][part]) {
      parts_[part]->will_arrive(carried.at, carried.message);
    }
  }
}

void ParallelRun::carry(Picos at, std::uint32_t message) {
  const PlannedMessage& m = plan_.messages[message];
  const std::uint32_t from = division_.part_of_node[m.src];
  const std::uint32_t to = division_.part_of_node[m.dst];
  if (from == to || shares_[from].alone) {
    parts_[to]->will_arrive(at, message);
  } else {
    shares_[from].nvlink[shares_[from].parity][to].push_back({at, message});
  }
}

// The lists of the window before last were read in the last.
void ParallelRun::open_lists(std::uint32_t part, std::uint64_t window) {
  auto& lists = shares_[part].away[(window + 1) & 1];
  for (auto& list : lists) list.clear();
  if (carries_) {
    shares_[part].parity = (window + 1) & 1;
    for (auto& list : shares_[part].nvlink[shares_[part].parity]) list.clear();
  }
  parts_[part]->network().send_to(lists);
}

// end: of the window, before which everything has happened. leaving: when the next packet leaves a
// queue, where the next window has to begin by then.
void ParallelRun::report(std::uint32_t part, std::uint64_t window, Picos end, Picos leaving) {
  WorldPart& own = *parts_[part];
  Share& share = shares_[part];
  Report report;
  if (end.count > 0) report.next = own.network().decide_leaving(end - Picos{1});
  report.next = earlier(report.next, earlier(leaving, own.wheel().next_time()));
  report.next = earlier(report.next, own.network().first_sent_away());
  if (carries_) {
    for (const auto& list : share.nvlink[(window + 1) & 1]) {
      for (const Carried& carried : list) report.next = earlier(report.next, carried.at);
    }
  }
  report.finished = own.finished().size();
  report.bytes_done = own.bytes_done();
  report.events = own.events();
  report.unsent = has_unsent(share);
  report.stop =
      part == 0 && options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  share.reports[(window + 1) & 1] = report;
}

// While a host has not sent everything once, none of its messages can be the last to finish in a
// window, because its acknowledgement comes later. (A failure may come at any time; then the run
// was misjudged.)
bool ParallelRun::has_unsent(Share& share) {
  for (; share.witness < share.hosts.size(); ++share.witness) {
    const std::uint32_t host = share.hosts[share.witness];
    const WorldHost& of = hosts_[host];
    if (of.engine.counters().tx_data_bytes < to_send_[host] &&
        of.app.finished() < of.app.planned()) {
      return true;
    }
  }
  return false;
}

}  // namespace paceline
