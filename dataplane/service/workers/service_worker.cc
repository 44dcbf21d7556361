#include "dataplane/service/workers/service_worker.h"

#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <new>

#include "dataplane/attach/few_processors.h"

namespace paceline::service {

namespace {

IdleSettings idle_settings(const WorkerTimes& times, bool receives_from_outside) {
  IdleSettings idle;
  idle.how = Idle::sleep;
  idle.spin_for = times.spin_for;
  idle.few_processors = attach::few_processors();
  idle.longest_sleep = receives_from_outside ? times.longest_sleep_listening : times.longest_sleep;
  return idle;
}

std::vector<telemetry::NicMeter> meters_of(const NicSet& nics) {
  std::vector<telemetry::NicMeter> meters;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const cc::PortFacts& facts = nics.nic(i).congestion.facts;
    meters.emplace_back(telemetry::MessageIdeal{facts.link_rate.bps, facts.base_rtt_ns,
                                                facts.mtu_bytes, facts.full_packet_bytes});
  }
  return meters;
}

std::uint32_t event_number(transport::AsyncEventKind kind) {
  switch (kind) {
    case transport::AsyncEventKind::comm_established:
      return IBV_EVENT_COMM_EST;
    case transport::AsyncEventKind::sq_drained:
      return IBV_EVENT_SQ_DRAINED;
    case transport::AsyncEventKind::last_wqe_reached:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case transport::AsyncEventKind::qp_request_error:
      return IBV_EVENT_QP_REQ_ERR;
    case transport::AsyncEventKind::qp_access_error:
      return IBV_EVENT_QP_ACCESS_ERR;
    case transport::AsyncEventKind::qp_fatal:
    case transport::AsyncEventKind::cq_error:
      break;
  }
  return IBV_EVENT_QP_FATAL;
}

}  // namespace

ServiceWorker::ServiceWorker(std::string name, std::unique_ptr<NicSet> nics,
                             const WorkerTimes& times)
    : name_(std::move(name)),
      nics_(std::move(nics)),
      pairs_(nics_->size()),
      up_(nics_->size()),
      meters_(meters_of(*nics_)),
      publisher_(*nics_, pairs_, meters_, probes_, times.telemetry_interval),
      loop_(idle_settings(times, nics_->receives_from_outside()), times.watch) {
  for (std::size_t nic = 0; nic < up_.size(); ++nic) up_[nic].store(nics_->ports_up(nic));
}

ServiceWorker::~ServiceWorker() { stop(); }

bool ServiceWorker::open() {
  if (!page_.make("paceline-worker", sizeof(attach::WorkerPage), attach::SharedWrite::maker_only)) {
    return false;
  }
  new (page_.data()) attach::WorkerPage;
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  bell_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return epoll_ && bell_ && watch(bell_.get());
}

void ServiceWorker::start() {
  tasks_.open();
  thread_ = std::thread([this] { run(); });
}

void ServiceWorker::stop() {
  tasks_.close();
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

// Edge-triggered: each write wakes once, and the counter need not be read back.
bool ServiceWorker::watch(int eventfd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, eventfd, &event) == 0;
}

void ServiceWorker::unwatch(int eventfd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, eventfd, nullptr);
}

void ServiceWorker::wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (page().asleep.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t one = 1;
  // The write cannot fail: the counter never reaches its maximum of 2^64 - 2.
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof(one));
}

bool ServiceWorker::turn(Picos now, Picos gap) {
  count(turns_);
  bool busy = tasks_.take(now);
  busy |= std::exchange(work_pending_, false);
  const std::size_t sessions = sessions_.size();
  for (std::size_t i = 0; i < sessions; ++i) {
    WorkerSession& session = *sessions_[(first_session_ + i) % sessions];
    if (session.pump(now)) {
      nics_->touch(session.nic());
      busy = true;
    }
  }
  if (sessions != 0) first_session_ = (first_session_ + 1) % sessions;
  busy |= nics_->turn(now, gap);
  for (const auto& pair : management_) busy |= pair->collect(now);
  if (nics_->link_changes() != link_changes_) report_links();
  // What is left after settle() did not fit, or its reader does not poll.
  for (WorkerSession* session : sessions_) {
    busy |= session->settle();
    if (!session->take_disturbed()) continue;
    nics_->touch(session->nic());
    work_pending_ = true;
  }
  if (busy) {
    report_events();
    count(busy_turns_);
  }
  if (publisher_.due(now, busy)) publisher_.publish(now, figures());
  page().turns.store(turns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return busy;
}

bool ServiceWorker::probe(Picos now) {
  bool posted = false;
  for (std::size_t nic = 0; nic < probes_.size(); ++nic) {
    if (!probes_[nic]->poll(now)) continue;
    nics_->touch(nic);
    posted = true;
  }
  work_pending_ |= posted;
  return posted;
}

void ServiceWorker::report_events() {
  std::array<transport::AsyncEvent, 16> events;
  for (std::size_t nic = 0; nic < nics_->size(); ++nic) {
    std::size_t n = 0;
    do {
      n = nics_->nic(nic).engine->poll_events(events);
      for (std::size_t i = 0; i < n; ++i) {
        if (events[i].kind == transport::AsyncEventKind::cq_error)
          continue;  // its adapter reports it
        const PairAdapter* const pair = pairs_[nic].find(events[i].qp_number);
        if (pair == nullptr) continue;
        pair->notify(event_number(events[i].kind));
      }
    } while (n == events.size());
  }
}

// Like a RoCE NIC, reports a change of addresses (GIDs), too, when the link comes up.
void ServiceWorker::report_links() {
  link_changes_ = nics_->link_changes();
  for (std::size_t nic = 0; nic < up_.size(); ++nic) {
    const std::uint8_t up = nics_->ports_up(nic);
    const unsigned changed = up_[nic].exchange(up, std::memory_order_acq_rel) ^ up;
    for (std::uint32_t port = 1; changed >> (port - 1) != 0; ++port) {
      if ((changed >> (port - 1) & 1U) == 0) continue;
      const bool active = (up >> (port - 1) & 1U) != 0;
      for (const WorkerSession* session : sessions_) {
        if (session->nic() != nic) continue;
        session->notify(active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
        if (active) session->notify(IBV_EVENT_GID_CHANGE, port);
      }
    }
  }
}

Picos ServiceWorker::next_deadline(Picos now) const {
  Picos next = earlier(nics_->next_deadline(), publisher_.next_deadline());
  for (const WorkerSession* session : sessions_) {
    next = earlier(next, session->next_deadline(now));
  }
  for (const auto& end : probes_) next = earlier(next, end->next_deadline());
  return next;
}

struct ServiceWorker::Body : LoopBody {
  Body(ServiceWorker& of, const TscClock& time) : worker(of), clock(time) {}

  bool on_turn(Picos now, Picos gap) {
    // A span with a gap is not counted: which part of it was work is unknown.
    if (worked && gap.count == 0) worker.add_busy(now - before);
    before = now;
    worked = worker.turn(now, gap);
    if (!worker.probes_.empty()) worked |= worker.probe(clock.now());
    return worked;
  }
  Picos next_deadline(Picos now) const { return worker.next_deadline(now); }
  void announce_sleep() { worker.page().asleep.store(1, std::memory_order_seq_cst); }
  void sleep(Picos time) { worker.sleep(time); }
  void awake() { worker.page().asleep.store(0, std::memory_order_relaxed); }

  ServiceWorker& worker;
  const TscClock& clock;
  Picos before{0};
  bool worked = false;
};

void ServiceWorker::run() {
  prctl(PR_SET_NAME, name_.c_str());
  nics_->enter_thread();
  const TscClock clock = TscClock::calibrated();
  nics_->use_clock(clock.poll_clock());
  ticks_per_pico_.store(clock.frequency() * 1e-12, std::memory_order_relaxed);
  Body body(*this, clock);
  loop_.run(clock, body, stop_);
  tasks_.refuse();
  probes_.clear();
  nics_->use_clock({});
  nics_->leave_thread();
}

// Returns when a watched eventfd is written, at the latest after `time`.
void ServiceWorker::sleep(Picos time) {
  count(sleeps_);
  const timespec span = to_timespec(time);
  pollfd fd{epoll_.get(), POLLIN, 0};
  if (::ppoll(&fd, 1, &span, nullptr) <= 0) return;
  std::array<epoll_event, 16> events;
  ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
}

void ServiceWorker::add(WorkerSession& session) {
  sessions_.push_back(&session);
  publisher_.count_session(session.nic(), true);
}

void ServiceWorker::remove(WorkerSession& session) {
  if (std::erase(sessions_, &session) != 0) publisher_.count_session(session.nic(), false);
}

void ServiceWorker::open_management(Picos now, std::uint32_t pd, const ManagementPair::Bell& bell) {
  for (std::size_t nic = 0; nic < nics_->size(); ++nic) {
    management_.push_back(std::make_unique<ManagementPair>(now, *nics_->nic(nic).engine, pd, bell));
  }
}

void ServiceWorker::reconfigure(Picos now, std::size_t nic, const transport::CcSetup& setup,
                                const NicInForce& in_force) {
  nics_->nic(nic).engine->reconfigure(now, setup, in_force.arm, in_force.epoch);
  begin_in_force(nic, in_force);
}

void ServiceWorker::reconfigure(Picos now, std::size_t nic, const transport::ArmsByPeer& arms,
                                const NicInForce& in_force) {
  nics_->nic(nic).engine->reconfigure(now, arms, in_force.epoch);
  begin_in_force(nic, in_force);
}

void ServiceWorker::begin_in_force(std::size_t nic, const NicInForce& in_force) {
  meters_[nic].use_clusters(in_force.clusters, in_force.own_cluster);
  meters_[nic].set_epoch(in_force.epoch);
  publisher_.note(nic, in_force);
  nics_->touch(nic);
  work_pending_ = true;
}

WorkerFigures ServiceWorker::figures() const {
  WorkerFigures f;
  f.turns = turns_.load(std::memory_order_relaxed);
  f.busy_turns = busy_turns_.load(std::memory_order_relaxed);
  f.sleeps = sleeps_.load(std::memory_order_relaxed);
  f.busy_cycles =
      static_cast<std::uint64_t>(static_cast<double>(busy_picos_.load(std::memory_order_relaxed)) *
                                 ticks_per_pico_.load(std::memory_order_relaxed));
  f.watch = loop_.watch().counters();
  return f;
}

}  // namespace paceline::service
