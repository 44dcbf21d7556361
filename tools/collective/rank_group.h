// The ranks of a collective or a job, a process each, from their start to their end: passes on
// addresses, synchronises all ranks (tools/collective/rank/meeting.h), and ends all of them when
// one fails. All other messages go to a listener.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/collective/meeting_socket.h"
#include "tools/collective/rank/json_lines.h"
#include "tools/collective/rank_listener.h"

namespace paceline::tools {

class RankGroup {
 public:
  // Throws std::runtime_error where there can be no socket.
  explicit RankGroup(RankListener& listener);
  ~RankGroup();  // ends those that still run
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const std::string& socket() const { return socket_.path(); }

  // Rank after rank; `name` is for errors. Returns why it cannot be started, or an empty text.
  std::string start(const std::string& name, std::vector<std::string> command);
  // Until all have ended, or `stop` is set. Returns the failures.
  std::vector<std::string> run(const std::atomic<bool>& stop);

 private:
  using Json = nlohmann::json;
  struct Member {
    std::string name;
    pid_t process = 0;                       // 0: has ended
    std::unique_ptr<rank::JsonLines> lines;  // null: is not here yet, or has gone
    Json addresses;                          // null until they have come
    bool waits = false;
    bool failed = false;
  };

  void take_in();
  void accept_all();
  void read_strangers();
  void read_member(std::uint32_t number);
  void handle(const Json& message, std::uint32_t number);
  void hand_on_addresses();
  void release_waiting();
  void reap();
  void note_end(std::uint32_t number, int status);
  void fail(Member& member, const std::string& what);
  bool any_left() const;
  void signal_all(int number) const;
  void end_all();

  RankListener& listener_;
  MeetingSocket socket_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<rank::JsonLines>> strangers_;  // have not told their rank yet
  std::vector<std::string> failures_;
  std::uint32_t waited_ = 0;
};

}  // namespace paceline::tools
