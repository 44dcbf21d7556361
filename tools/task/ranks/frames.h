// Messages between rank 0 and the other ranks: frames over TCP, each a length, a kind and a
// payload. Numbers are little-endian. Nothing received is trusted: a frame that is too long for its
// sender, of an unknown kind, cut short or with bytes left over gives no value.
//
//   rank 0 to a rank: challenge, welcome; then tasks, records, finish, stop
//   a rank to rank 0: hello; then ready for each list, records
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::tools {

enum class FrameKind : std::uint8_t {
  challenge = 1,
  hello,
  welcome,
  ready,
  tasks,
  records,
  finish,
  stop,
};

inline constexpr std::size_t kFrameHead = 5;             // length of kind and payload; kind
inline constexpr std::size_t kMostStrangerFrame = 1024;  // bytes, before the sender's proof
inline constexpr std::size_t kMostFrame = std::size_t{1} << 28;
inline constexpr std::size_t kMostRecord = kMostFrame / 2;
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kMostName = 200;
inline constexpr std::size_t kMostKeys = 4096;

struct Frame {
  FrameKind kind = FrameKind::challenge;
  std::string_view payload;
};

// Takes whole frames off the front of what has arrived.
class FrameReader {
 public:
  // `most`: bytes of kind and payload.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void set_most(std::size_t most) { most_ = most; }
  void append(std::string_view bytes);
  // The next frame; valid until append(). None: more bytes are needed, or error() is set and no
  // more frames follow.
  std::optional<Frame> next();
  const std::string& error() const { return error_; }
  // Nothing of a frame is left.
  bool empty() const { return taken_ == bytes_.size(); }

 private:
  std::size_t most_;
  std::string bytes_;
  std::size_t taken_ = 0;
  std::string error_;
};

struct Challenge {
  std::string nonce;  // kNonceBytes, used once
};

struct Hello {
  std::string nonce;  // kNonceBytes
  std::string proof;  // 64 characters (rank_proof.h)
  std::uint32_t rank = 0;
  std::uint32_t threads = 1;
  std::uint64_t program = 0;  // program_key()
  std::string host;           // at most kMostName
  std::string version;        // at most kMostName
};

struct Welcome {
  std::string proof;
};

// This rank has built the list of tasks, too.
struct Ready {
  std::uint32_t list = 0;  // lists of a command are numbered from 0
  std::uint64_t key = 0;   // TaskList::key
  std::uint64_t size = 0;
  std::vector<std::uint64_t> task_keys;  // of the first tasks, at most kMostKeys
};

struct TaskNumbers {
  std::uint32_t list = 0;
  std::vector<std::uint64_t> tasks;
};

enum class TaskEnd : std::uint8_t {
  record,   // `text` is the record
  refused,  // no rank can build the world; `text` says why
  broken,   // this rank could not execute the task; `text` says why
};

struct DoneTask {
  std::uint64_t task = 0;
  TaskEnd end = TaskEnd::record;
  std::uint64_t hops = 0;
  double cpu_seconds = 0;  // of the thread
  double seconds = 0;
  std::string text;
};

struct DoneTasks {
  std::uint32_t list = 0;
  std::vector<DoneTask> tasks;
};

// The list is complete.
struct Finish {
  std::uint32_t list = 0;
};

// The command ends here.
struct Stop {
  bool whole = false;  // no rank was lost
};

std::string to_frame(const Challenge& value);
std::string to_frame(const Hello& value);
std::string to_frame(const Welcome& value);
std::string to_frame(const Ready& value);
std::string to_frame(const TaskNumbers& value);
std::string to_frame(const Finish& value);
std::string to_frame(const Stop& value);
// Any number of tasks; each frame has one record, or more up to a few megabytes.
std::string to_frames(const DoneTasks& value);

std::optional<Challenge> to_challenge(std::string_view payload);
std::optional<Hello> to_hello(std::string_view payload);
std::optional<Welcome> to_welcome(std::string_view payload);
std::optional<Ready> to_ready(std::string_view payload);
std::optional<TaskNumbers> to_task_numbers(std::string_view payload);
std::optional<DoneTasks> to_done_tasks(std::string_view payload);
std::optional<Finish> to_finish(std::string_view payload);
std::optional<Stop> to_stop(std::string_view payload);

}  // namespace paceline::tools
