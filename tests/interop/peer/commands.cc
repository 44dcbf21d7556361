#include "tests/interop/peer/commands.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "tests/interop/peer/pingpong.h"

namespace paceline::interop {

namespace {

using Steady = std::chrono::steady_clock;
constexpr int kNoInput = -1;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin || at != ' ') parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint64_t number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] =
      std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
  if (error != std::errc{} || stopped != end) {
    throw std::runtime_error("not a number: " + std::string(text));
  }
  return value;
}

std::uint32_t number32(std::string_view text) { return static_cast<std::uint32_t>(number(text)); }

const std::string& at(std::span<const std::string> words, std::size_t index) {
  if (index >= words.size()) throw std::runtime_error("a word is missing");
  return words[index];
}

// Byte i of the pattern; it tells apart seeds, places and pages.
std::byte pattern(std::uint64_t seed, std::uint64_t i) {
  return static_cast<std::byte>(1 + 31 * seed + 7 * i + (i >> 8));
}

void put_pattern(std::span<std::byte> to, std::uint64_t seed, std::uint64_t from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = seed == 0 ? std::byte{0} : pattern(seed, from + i);
  }
}

Operation operation_named(const std::string& name) {
  constexpr std::array<const char*, 7> kNames = {"send", "send_imm",  "write",       "write_imm",
                                                 "read", "fetch_add", "compare_swap"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Operation>(i);
  }
  throw std::runtime_error("no operation " + name);
}

std::string line_of(const Done& done) {
  std::ostringstream line;
  line << "wc " << done.id << ' ' << done.operation << ' ' << done.bytes << ' ';
  if (done.immediate) {
    line << *done.immediate;
  } else {
    line << '-';
  }
  line << ' ' << done.source << ' ' << (done.grh ? "grh" : "-") << ' ' << done.status << '\n';
  return line.str();
}

void write_all(int out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(out, text.data(), text.size());
    if (n <= 0) throw std::runtime_error("nobody takes the answers");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

bool input_there(int in) {
  pollfd entry{in, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

Registered& Commands::named(const std::string& name, std::uint64_t offset, std::uint64_t bytes) {
  const auto found = regions_.find(name);
  if (found == regions_.end()) throw std::runtime_error("no region " + name);
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) {
    throw std::runtime_error("beyond the end of " + name);
  }
  return found->second;
}

Work Commands::placed(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const std::uint64_t offset = number(at(parts, 1));
  Work work;
  work.length = number(at(parts, 2));
  const Registered& region = named(parts[0], offset, work.length);
  work.address = region.address + offset;
  work.key = region.local_key;
  return work;
}

std::string Commands::region(std::span<const std::string> words) {
  const Registered added = backend_.add_region(number(at(words, 2)), at(words, 3) == "remote");
  regions_[words[1]] = added;
  return std::to_string(added.address) + ' ' + std::to_string(added.remote_key);
}

std::string Commands::fill(std::span<const std::string> words) {
  const std::uint64_t offset = number(at(words, 2));
  const std::uint64_t bytes = number(at(words, 3));
  const Registered& region = named(words[1], offset, bytes);
  put_pattern({region.memory + offset, bytes}, number(at(words, 4)), 0);
  return "";
}

std::string Commands::verify(std::span<const std::string> words) {
  const Registered& region = named(at(words, 1), 0, 0);
  std::vector<std::byte> expected(region.bytes);
  for (const std::string& piece : words.subspan(2)) {
    const std::vector<std::string> parts = split(piece, ':');
    const std::uint64_t offset = number(at(parts, 0));
    const std::uint64_t bytes = number(at(parts, 1));
    named(words[1], offset, bytes);
    put_pattern(std::span(expected).subspan(offset, bytes), number(at(parts, 2)),
                number(at(parts, 3)));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (region.memory[i] == expected[i]) continue;
    throw std::runtime_error(words[1] + " differs at byte " + std::to_string(i) + ": " +
                             std::to_string(std::to_integer<int>(region.memory[i])) +
                             " instead of " + std::to_string(std::to_integer<int>(expected[i])));
  }
  return "";
}

std::string Commands::word(std::span<const std::string> words) {
  const std::uint64_t offset = number(at(words, 2));
  const Registered& region = named(words[1], offset, 8);
  std::uint64_t value = 0;
  if (words.size() > 3) {
    value = number(words[3]);
    std::memcpy(region.memory + offset, &value, sizeof value);
  }
  std::memcpy(&value, region.memory + offset, sizeof value);
  return std::to_string(value);
}

// For what no pattern says: the IP header in front of a datagram.
std::string Commands::bytes(std::span<const std::string> words) {
  const std::uint64_t offset = number(at(words, 2));
  const std::uint64_t count = number(at(words, 3));
  const Registered& region = named(words[1], offset, count);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : std::span(region.memory + offset, count)) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{0xF})];
  }
  return text;
}

std::string Commands::make_qp(std::span<const std::string> words) {
  QueuePairSpec spec;
  spec.datagram = at(words, 2) == "ud";
  for (const std::string& word : words.subspan(3)) {
    const std::vector<std::string> parts = split(word, '=');
    const std::uint32_t value = number32(at(parts, 1));
    const std::string& name = parts[0];
    if (name == "mtu") {
      spec.mtu = value;
    } else if (name == "psn") {
      spec.first_psn = value;
    } else if (name == "qkey") {
      spec.qkey = value;
    } else if (name == "timeout") {
      spec.timeout = value;
    } else if (name == "retries") {
      spec.retries = value;
    } else if (name == "rnr_retries") {
      spec.rnr_retries = value;
    } else if (name == "rnr_timer") {
      spec.rnr_timer = value;
    } else if (name == "depth") {
      spec.depth = value;
    } else if (name == "ecn") {
      spec.ecn = value != 0;
    } else {
      throw std::runtime_error("no attribute " + name);
    }
  }
  return std::to_string(backend_.make_qp(number32(words[1]), spec));
}

std::string Commands::post(std::span<const std::string> words) {
  Work work = placed(at(words, 4));
  work.operation = operation_named(words[2]);
  work.id = number(words[3]);
  for (const std::string& word : words.subspan(5)) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "to") {
      const std::vector<std::string> parts = split(value, ':');
      work.remote_address = number(at(parts, 0));
      work.remote_key = number32(at(parts, 1));
    } else if (name == "imm") {
      work.immediate = number32(value);
    } else if (name == "compare") {
      work.compare = number(value);
    } else if (name == "swap") {
      work.swap_add = number(value);
    } else if (name == "ip") {
      work.ip = value;
    } else if (name == "qpn") {
      work.number = number32(value);
    } else if (name == "qkey") {
      work.qkey = number32(value);
    } else {
      throw std::runtime_error("no argument " + name);
    }
  }
  backend_.post(number32(words[1]), work);
  return "";
}

std::string Commands::wait(std::span<const std::string> words) {
  const unsigned id = number32(at(words, 1));
  const bool receives = at(words, 2) == "receive";
  const std::uint64_t wanted = number(at(words, 3));
  const auto end = Steady::now() + std::chrono::milliseconds(number(at(words, 4)));
  std::string lines;
  std::uint64_t count = 0;
  while (count < wanted) {
    for (const Done& done : backend_.completed(id, receives)) {
      lines += line_of(done);
      ++count;
    }
    if (count >= wanted || Steady::now() >= end) break;
    backend_.turn(kNoInput);
  }
  return lines + "ok " + std::to_string(count);
}

std::string Commands::answer(std::span<const std::string> words) {
  const std::string& verb = at(words, 0);
  if (verb == "region") return "ok " + region(words);
  if (verb == "fill") return "ok" + fill(words);
  if (verb == "verify") return "ok" + verify(words);
  if (verb == "word") return "ok " + word(words);
  if (verb == "bytes") return "ok " + bytes(words);
  if (verb == "qp") return "ok " + make_qp(words);
  if (verb == "post") return "ok" + post(words);
  if (verb == "wait") return wait(words);
  if (verb == "state") return "ok " + backend_.state(number32(at(words, 1)));
  if (verb == "address") return "ok " + backend_.address();
  if (verb == "connect") {
    backend_.connect(number32(at(words, 1)),
                     {at(words, 2), number32(at(words, 3)), number32(at(words, 4))});
    return "ok";
  }
  if (verb == "receive") {
    Work work = placed(at(words, 3));
    work.id = number(words[2]);
    backend_.receive(number32(words[1]), work);
    return "ok";
  }
  if (verb == "pingpong") {
    PingpongOptions options;
    if (at(words, 1) != "listen") options.connect = words[1];
    options.bytes = number(at(words, 2));
    options.iterations = number(at(words, 3));
    options.mtu = number32(at(words, 4));
    return "ok " + std::to_string(pingpong(backend_, options));
  }
  if (verb == "destroy") {
    backend_.destroy(number32(at(words, 1)));
    return "ok";
  }
  if (verb == "idle") {
    const auto end = Steady::now() + std::chrono::milliseconds(number(at(words, 1)));
    while (Steady::now() < end) backend_.turn(kNoInput);
    return "ok";
  }
  if (std::optional<std::string> text = backend_.other(words)) return *text;
  throw std::runtime_error("no command " + verb);
}

void Commands::run(int in, int out) {
  std::string input;
  std::array<char, 4096> chunk;
  write_all(out, "ready\n");
  for (;;) {
    for (std::size_t end; (end = input.find('\n')) != std::string::npos;) {
      const std::vector<std::string> words = split(std::string_view(input).substr(0, end), ' ');
      input.erase(0, end + 1);
      if (words.empty()) continue;
      std::string text;
      try {
        text = answer(words);
      } catch (const std::exception& error) {
        text = std::string("error ") + error.what();
      }
      write_all(out, text + '\n');
    }
    backend_.turn(in);
    if (!input_there(in)) continue;
    const ssize_t n = read(in, chunk.data(), chunk.size());
    if (n <= 0) return;
    input.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace paceline::interop
