#include "tools/task/ranks/task_worker.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/cli/cli.h"
#include "tools/task/input_keys.h"
#include "tools/task/ranks/rank_proof.h"

namespace paceline::tools {

namespace {

constexpr double kConnectSeconds = 2;
constexpr int kLookMilliseconds = 100;

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

}  // namespace

TaskWorker::TaskWorker(MeetingPoint where, std::uint32_t rank)
    : where_(std::move(where)), rank_(rank), nonce_(secret_bytes(kNonceBytes)) {}

std::string TaskWorker::connect() {
  std::vector<std::string> problems;
  for (const std::string& address : where_.addresses) {
    auto connected = connect_to(address, where_.port, kConnectSeconds);
    if (connected.ok()) {
      socket_ = std::make_unique<RankSocket>(std::move(connected.value), kMostFrame);
      return {};
    }
    problems.push_back(connected.errors.front());
  }
  return fmt::format("rank {} on {} cannot reach rank 0: {}", rank_, host_name(),
                     fmt::join(problems, "; "));
}

bool TaskWorker::wait_for_first(unsigned threads) {
  while (!Interrupt::flag().load()) {
    wait(-1);
    const bool here = socket_->receive(cost_);
    while (const auto frame = socket_->frames().next()) {
      if (hear_welcome(*frame, threads)) return true;
      if (proof_.empty()) return false;
    }
    if (!here || !socket_->frames().error().empty()) return false;
  }
  return false;
}

// The challenge is answered; the welcome lets this rank in.
bool TaskWorker::hear_welcome(const Frame& frame, unsigned threads) {
  if (const auto challenge = to_challenge(frame.payload);
      frame.kind == FrameKind::challenge && challenge && proof_.empty()) {
    proof_ = rank_proof(where_.token, RankRole::first, challenge->nonce, nonce_);
    Hello hello;
    hello.nonce = nonce_;
    hello.proof = rank_proof(where_.token, RankRole::other, challenge->nonce, nonce_);
    hello.rank = rank_;
    hello.threads = threads;
    hello.program = program_key();
    hello.host = host_name();
    hello.version = PACELINE_VERSION;
    send(to_frame(hello));
    return false;
  }
  const auto welcome = to_welcome(frame.payload);
  if (frame.kind == FrameKind::welcome && welcome && same_proof(welcome->proof, proof_)) {
    return true;
  }
  proof_.clear();
  return false;
}

RankRun TaskWorker::run(TaskList& tasks, unsigned threads, Keepers keepers) {
  RankRun out;
  Ready ready{list_, tasks.key(), tasks.size(), {}};
  for (std::size_t task = 0; task < std::min(tasks.size(), kMostKeys); ++task) {
    ready.task_keys.push_back(tasks.task_key(task));
  }
  send(to_frame(ready));
  ExecutingThreads executing(tasks, threads);
  Heard heard = Heard::nothing;
  while (heard == Heard::nothing && !Interrupt::flag().load() && out.error.empty()) {
    wait(executing.descriptor());
    heard = hear(tasks, executing, keepers, out);
    DoneTasks done{list_, executing.take()};
    out.executed += done.tasks.size();
    if (heard == Heard::nothing && !done.tasks.empty()) send(to_frames(done));
  }
  executing.stop();
  // Tasks that ended before the interrupt are not lost.
  if (heard == Heard::nothing) send(to_frames({list_, executing.take()}));
  ++list_;
  if (!out.error.empty()) {
    out.end = RankRun::End::failed;
  } else if (heard != Heard::finish) {
    out.end = RankRun::End::interrupted;
  }
  return out;
}

bool TaskWorker::wait_for_stop() {
  std::optional<Stop> stop;
  bool here = true;
  while (here && !stop && !Interrupt::flag().load()) {
    while (const auto frame = socket_->frames().next()) {
      if (frame->kind == FrameKind::stop) stop = to_stop(frame->payload);
    }
    if (stop) break;
    wait(-1);
    here = socket_->receive(cost_);
  }
  socket_.reset();
  return stop && stop->whole;
}

TaskWorker::Heard TaskWorker::hear(TaskList& tasks, ExecutingThreads& executing, Keepers keepers,
                                   RankRun& out) {
  // Everything that can be read counts, even if nothing can be sent any more.
  socket_->flush(cost_);
  const bool here = socket_->receive(cost_);
  while (const auto frame = socket_->frames().next()) {
    const Heard heard = hear_frame(*frame, tasks, executing, keepers, out);
    if (heard != Heard::nothing) return heard;
  }
  if (!socket_->frames().error().empty()) out.error = "rank 0 sent " + socket_->frames().error();
  if (!here && out.error.empty()) {
    out.error = fmt::format(
        "rank {} on {}: rank 0 has ended; what is finished is kept there, and the same command "
        "goes "
        "on",
        rank_, host_name());
  }
  return Heard::nothing;
}

TaskWorker::Heard TaskWorker::hear_frame(const Frame& frame, TaskList& tasks,
                                         ExecutingThreads& executing, Keepers keepers,
                                         RankRun& out) {
  const auto broken = [&] {
    out.error = fmt::format("rank {} on {}: rank 0 sent a broken frame", rank_, host_name());
    return Heard::nothing;
  };
  switch (frame.kind) {
    case FrameKind::tasks: {
      const auto more = to_task_numbers(frame.payload);
      if (!more || more->list != list_) return broken();
      for (const std::uint64_t task : more->tasks) {
        if (task >= tasks.size()) return broken();
      }
      executing.add(more->tasks);
      return Heard::nothing;
    }
    case FrameKind::records: {
      auto all = to_done_tasks(frame.payload);
      if (!all || all->list != list_) return broken();
      for (const DoneTask& done : all->tasks) {
        if (keepers != Keepers::every_rank || done.task >= tasks.size()) return broken();
        if (out.error.empty()) out.error = tasks.keep(done.task, done.text);
      }
      return Heard::nothing;
    }
    case FrameKind::finish: {
      const auto finish = to_finish(frame.payload);
      if (!finish || finish->list != list_) return broken();
      return Heard::finish;
    }
    case FrameKind::stop:
      return Heard::stop;
    default:
      return broken();
  }
}

// The reader notices a failure: what rank 0 said before it ended still counts.
void TaskWorker::send(const std::string& frames) {
  if (!frames.empty()) socket_->send(frames, cost_);
}

void TaskWorker::wait(int other) const {
  std::array<pollfd, 2> waits{};
  waits[0] = {socket_->descriptor(),
              static_cast<short>(POLLIN | (socket_->has_unsent() ? POLLOUT : 0)), 0};
  waits[1] = {other, POLLIN, 0};
  ::poll(waits.data(), waits.size(), kLookMilliseconds);
}

}  // namespace paceline::tools
