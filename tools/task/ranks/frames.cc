#include "tools/task/ranks/frames.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <utility>

#include <fmt/format.h>

namespace paceline::tools {

namespace {

constexpr std::size_t kProofCharacters = 64;
constexpr std::size_t kFullFrame = std::size_t{1} << 20;  // no record is added to one of this size

class FrameWriter {
 public:
  explicit FrameWriter(FrameKind kind) : bytes_(kFrameHead - 1, '\0') {
    bytes_.push_back(static_cast<char>(kind));
  }
  template <std::unsigned_integral T>
  FrameWriter& number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    }
    return *this;
  }
  FrameWriter& number(double value) { return number(std::bit_cast<std::uint64_t>(value)); }
  FrameWriter& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  FrameWriter& raw(std::string_view value) {
    bytes_.append(value);
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::string finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() - kFrameHead + 1);
    for (std::size_t i = 0; i < 4; ++i) bytes_[i] = static_cast<char>(length >> (8 * i) & 0xFF);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Everything after the first thing that is missing is zero or empty, and finish() gives nothing.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    const std::string_view from = raw(sizeof value);
    for (std::size_t i = 0; i < from.size(); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<std::uint8_t>(from[i])) << (8 * i));
    }
    return value;
  }
  // Finite, not negative.
  double seconds() {
    const auto value = std::bit_cast<double>(number<std::uint64_t>());
    good_ = good_ && std::isfinite(value) && value >= 0;
    return good_ ? value : 0;
  }
  std::string text(std::size_t most) {
    const auto length = number<std::uint32_t>();
    if (length > most) good_ = false;
    return std::string(raw(length));
  }
  std::string_view raw(std::size_t length) {
    if (!good_ || length > bytes_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view out = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return out;
  }
  std::vector<std::uint64_t> numbers(std::size_t most) {
    const auto count = number<std::uint32_t>();
    good_ = good_ && count <= most && count * sizeof(std::uint64_t) <= bytes_.size();
    std::vector<std::uint64_t> out;
    for (std::uint32_t i = 0; good_ && i < count; ++i) out.push_back(number<std::uint64_t>());
    return out;
  }
  bool good() const { return good_; }
  bool more() const { return good_ && !bytes_.empty(); }
  void check(bool holds) { good_ = good_ && holds; }

  template <class T>
  std::optional<T> finish(T value) const {
    if (!good_ || !bytes_.empty()) return {};
    return value;
  }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

FrameWriter& add_numbers(FrameWriter& out, const std::vector<std::uint64_t>& numbers) {
  out.number(static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint64_t number : numbers) out.number(number);
  return out;
}

}  // namespace

void FrameReader::append(std::string_view bytes) {
  if (!error_.empty()) return;
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_.append(bytes);
}

std::optional<Frame> FrameReader::next() {
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  if (!error_.empty() || left.size() < kFrameHead) return {};
  PayloadReader head(left);
  const auto length = head.number<std::uint32_t>();
  const auto kind = head.number<std::uint8_t>();
  if (length == 0 || length > most_) {
    error_ = fmt::format("a frame of {} bytes; 1 to {} are allowed", length, most_);
    return {};
  }
  if (kind < static_cast<std::uint8_t>(FrameKind::challenge) ||
      kind > static_cast<std::uint8_t>(FrameKind::stop)) {
    error_ = fmt::format("a frame of the unknown kind {}", kind);
    return {};
  }
  if (left.size() < kFrameHead - 1 + length) return {};
  taken_ += kFrameHead - 1 + length;
  return Frame{static_cast<FrameKind>(kind), left.substr(kFrameHead, length - 1)};
}

std::string to_frame(const Challenge& value) {
  return FrameWriter(FrameKind::challenge).raw(value.nonce).finish();
}

std::string to_frame(const Hello& value) {
  return FrameWriter(FrameKind::hello)
      .raw(value.nonce)
      .raw(value.proof)
      .number(value.rank)
      .number(value.threads)
      .number(value.program)
      .text(value.host.substr(0, kMostName))
      .text(value.version.substr(0, kMostName))
      .finish();
}

std::string to_frame(const Welcome& value) {
  return FrameWriter(FrameKind::welcome).raw(value.proof).finish();
}

std::string to_frame(const Ready& value) {
  FrameWriter out(FrameKind::ready);
  out.number(value.list).number(value.key).number(value.size);
  return add_numbers(out, value.task_keys).finish();
}

std::string to_frame(const TaskNumbers& value) {
  FrameWriter out(FrameKind::tasks);
  out.number(value.list);
  return add_numbers(out, value.tasks).finish();
}

std::string to_frame(const Finish& value) {
  return FrameWriter(FrameKind::finish).number(value.list).finish();
}

std::string to_frame(const Stop& value) {
  return FrameWriter(FrameKind::stop).number(std::uint8_t{value.whole}).finish();
}

std::string to_frames(const DoneTasks& value) {
  std::string frames;
  for (std::size_t next = 0; next < value.tasks.size();) {
    FrameWriter out(FrameKind::records);
    out.number(value.list);
    for (; next < value.tasks.size() && out.size() < kFullFrame; ++next) {
      const DoneTask& task = value.tasks[next];
      out.number(task.task).number(static_cast<std::uint8_t>(task.end)).number(task.hops);
      out.number(task.cpu_seconds).number(task.seconds).text(task.text);
    }
    frames += out.finish();
  }
  return frames;
}

std::optional<Challenge> to_challenge(std::string_view payload) {
  PayloadReader in(payload);
  Challenge value{std::string(in.raw(kNonceBytes))};
  return in.finish(std::move(value));
}

std::optional<Hello> to_hello(std::string_view payload) {
  PayloadReader in(payload);
  Hello value;
  value.nonce = in.raw(kNonceBytes);
  value.proof = in.raw(kProofCharacters);
  value.rank = in.number<std::uint32_t>();
  value.threads = in.number<std::uint32_t>();
  value.program = in.number<std::uint64_t>();
  value.host = in.text(kMostName);
  value.version = in.text(kMostName);
  return in.finish(std::move(value));
}

std::optional<Welcome> to_welcome(std::string_view payload) {
  PayloadReader in(payload);
  Welcome value{std::string(in.raw(kProofCharacters))};
  return in.finish(std::move(value));
}

std::optional<Ready> to_ready(std::string_view payload) {
  PayloadReader in(payload);
  Ready value;
  value.list = in.number<std::uint32_t>();
  value.key = in.number<std::uint64_t>();
  value.size = in.number<std::uint64_t>();
  value.task_keys = in.numbers(kMostKeys);
  return in.finish(std::move(value));
}

std::optional<TaskNumbers> to_task_numbers(std::string_view payload) {
  PayloadReader in(payload);
  TaskNumbers value;
  value.list = in.number<std::uint32_t>();
  value.tasks = in.numbers(kMostFrame);
  return in.finish(std::move(value));
}

std::optional<DoneTasks> to_done_tasks(std::string_view payload) {
  PayloadReader in(payload);
  DoneTasks value;
  value.list = in.number<std::uint32_t>();
  while (in.more()) {
    DoneTask task;
    task.task = in.number<std::uint64_t>();
    const auto end = in.number<std::uint8_t>();
    in.check(end <= static_cast<std::uint8_t>(TaskEnd::broken));
    task.end = static_cast<TaskEnd>(end);
    task.hops = in.number<std::uint64_t>();
    task.cpu_seconds = in.seconds();
    task.seconds = in.seconds();
    task.text = in.text(kMostFrame);
    in.check(!task.text.empty());
    if (in.good()) value.tasks.push_back(std::move(task));
  }
  return in.finish(std::move(value));
}

std::optional<Finish> to_finish(std::string_view payload) {
  PayloadReader in(payload);
  const Finish value{in.number<std::uint32_t>()};
  return in.finish(value);
}

std::optional<Stop> to_stop(std::string_view payload) {
  PayloadReader in(payload);
  const auto whole = in.number<std::uint8_t>();
  in.check(whole <= 1);
  return in.finish(Stop{whole == 1});
}

}  // namespace paceline::tools
