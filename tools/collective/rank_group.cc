#include "tools/collective/rank_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

constexpr int kLookMs = 50;
// The time after the first failure for other ranks to report what they saw, and then to end.
constexpr double kSayWhySeconds = 1;
constexpr double kEndSeconds = 2;

}  // namespace

RankGroup::RankGroup(RankListener& listener) : listener_(listener) {}

RankGroup::~RankGroup() { end_all(); }

std::string RankGroup::start(const std::string& name, std::vector<std::string> command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // Ctrl-C is for the parent, which ends the ranks.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  Member member;
  member.name = name;
  const int error =
      ::posix_spawn(&member.process, words[0], nullptr, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fmt::format("{}: {}", command.front(), std::strerror(error));
  members_.push_back(std::move(member));
  return "";
}

std::vector<std::string> RankGroup::run(const std::atomic<bool>& stop) {
  double failed_at = 0;
  while (any_left() && !stop.load(std::memory_order_relaxed)) {
    take_in();
    reap();
    if (failures_.empty()) failures_ = listener_.obstacles();
    if (failures_.empty()) continue;
    if (failed_at == 0) failed_at = wall_seconds();
    if (wall_seconds() - failed_at > kSayWhySeconds) break;
  }
  end_all();
  return std::move(failures_);
}

void RankGroup::take_in() {
  std::vector<pollfd> waits{{socket_.descriptor(), POLLIN, 0}};
  for (const auto& lines : strangers_) waits.push_back({lines->descriptor(), POLLIN, 0});
  for (const Member& member : members_) {
    if (member.lines) waits.push_back({member.lines->descriptor(), POLLIN, 0});
  }
  if (::poll(waits.data(), waits.size(), kLookMs) <= 0) return;
  accept_all();
  read_strangers();
  for (std::uint32_t r = 0; r < members_.size(); ++r) {
    if (members_[r].lines) read_member(r);
  }
  hand_on_addresses();
  release_waiting();
}

void RankGroup::accept_all() {
  for (int descriptor; (descriptor = socket_.accept()) >= 0;) {
    strangers_.push_back(std::make_unique<rank::JsonLines>(descriptor));
  }
}

void RankGroup::read_strangers() {
  std::erase_if(strangers_, [this](std::unique_ptr<rank::JsonLines>& lines) {
    const bool there = lines->receive();
    const auto message = lines->next();
    if (!message) return !there;
    if (!message->is_object() || !message->contains("rank")) return true;
    const Json& number = message->at("rank");
    if (number.is_number_unsigned() && number.get<std::uint64_t>() < members_.size()) {
      const auto rank = number.get<std::uint32_t>();
      listener_.greet(rank, *lines);
      members_[rank].lines = std::move(lines);
    }
    return true;
  });
}

void RankGroup::read_member(std::uint32_t number) {
  Member& member = members_[number];
  const bool there = member.lines->receive();
  while (const auto message = member.lines->next()) {
    try {
      handle(*message, number);
    } catch (const std::exception& error) {
      fail(member, fmt::format("its message {}: {}", message->dump(), error.what()));
    }
  }
  if (!there) member.lines.reset();
}

void RankGroup::handle(const Json& message, std::uint32_t number) {
  Member& member = members_[number];
  if (message.contains("failed")) {
    fail(member, message.at("failed").get<std::string>());
  } else if (message.contains("addresses")) {
    member.addresses = message.at("addresses");
  } else if (message.contains("wait")) {
    member.waits = message.at("wait").get<std::uint32_t>() == waited_;
  } else {
    listener_.take(number, message);
  }
}

// Once all have come: sends each rank the addresses that the others have for it.
void RankGroup::hand_on_addresses() {
  for (const Member& member : members_) {
    if (member.addresses.is_null()) return;
  }
  std::vector<Json> for_rank(members_.size(), Json::array());
  for (std::uint32_t r = 0; r < members_.size(); ++r) {
    for (Json& address : members_[r].addresses) {
      Json& theirs = for_rank.at(address.at("rank").get<std::uint32_t>());
      address["rank"] = r;
      theirs.push_back(address);
    }
    members_[r].addresses = nullptr;
  }
  for (std::uint32_t r = 0; r < members_.size(); ++r) {
    if (members_[r].lines) members_[r].lines->send({{"addresses", for_rank[r]}});
  }
}

void RankGroup::release_waiting() {
  for (const Member& member : members_) {
    if (!member.waits) return;
  }
  const std::int64_t now =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  for (Member& member : members_) {
    member.waits = false;
    if (member.lines) member.lines->send({{"go", waited_}, {"at_ns", now}});
  }
  ++waited_;
}

void RankGroup::reap() {
  for (std::uint32_t r = 0; r < members_.size(); ++r) {
    Member& member = members_[r];
    int status = 0;
    if (member.process == 0 || ::waitpid(member.process, &status, WNOHANG) != member.process) {
      continue;
    }
    member.process = 0;
    if (member.lines) read_member(r);
    note_end(r, status);
  }
}

void RankGroup::note_end(std::uint32_t number, int status) {
  Member& member = members_[number];
  if (WIFSIGNALED(status)) {
    fail(member,
         fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  } else if (!member.failed && (WEXITSTATUS(status) != 0 || !listener_.complete(number))) {
    fail(member, fmt::format("ended with exit status {} before its results were complete",
                             WEXITSTATUS(status)));
  }
}

void RankGroup::fail(Member& member, const std::string& what) {
  member.failed = true;
  failures_.push_back(fmt::format("{}: {}", member.name, what));
}

bool RankGroup::any_left() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.process != 0; });
}

void RankGroup::signal_all(int number) const {
  for (const Member& member : members_) {
    if (member.process != 0) ::kill(member.process, number);
  }
}

void RankGroup::end_all() {
  signal_all(SIGTERM);
  const double limit = wall_seconds() + kEndSeconds;
  bool killed = false;
  while (any_left()) {
    if (!killed && wall_seconds() > limit) {
      signal_all(SIGKILL);
      killed = true;
    }
    for (Member& member : members_) {
      if (member.process != 0 && ::waitpid(member.process, nullptr, WNOHANG) == member.process) {
        member.process = 0;
      }
    }
    ::usleep(1000);
  }
}

}  // namespace paceline::tools
