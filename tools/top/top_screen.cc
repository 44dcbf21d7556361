#include "tools/top/top_screen.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "tools/cli/text_table.h"

namespace paceline::tools {

namespace {

constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};

std::string scaled(double value, const char* unit) {
  if (value < 0.5) return "0";
  std::size_t k = 0;
  while (value >= 999.5 && k + 1 < kUnits.size()) {
    value /= 1000;
    ++k;
  }
  const bool bare = k == 0 && *unit == 0;
  return fmt::format("{:.{}f}{}{}{}", value,
                     k == 0 || value >= 99.95 ? 0
                     : value >= 9.995         ? 1
                                              : 2,
                     bare ? "" : " ", kUnits[k], unit);
}

std::string count_text(double per_second) {
  return per_second < 0.05   ? "0"
         : per_second < 9.95 ? fmt::format("{:.1f}", per_second)
                             : scaled(per_second, "");
}

std::string micros_text(double us) { return us <= 0 ? "-" : fmt::format("{:.1f}", us); }

using Lines = std::vector<std::string>;

// Text outside of tables, cut to the width of the terminal.
void put(Lines& lines, std::string line, const TopView& view, Style style = Style::plain) {
  if (view.width != 0 && line.size() > view.width) line.resize(view.width);
  lines.push_back(styled(line, style, view.colour));
}

// The first parts that fit, in their order.
std::string joined(const std::vector<std::string>& parts, std::size_t width) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!line.empty() && width != 0 && line.size() + 3 + part.size() > width) continue;
    line += (line.empty() ? "" : "   ") + part;
  }
  return line;
}

void put_head(Lines& lines, const TopRows& rows, const TopView& view) {
  put(lines,
      joined({"paceline top", view.clock, view.stopped ? "STOPPED (space: go)" : "",
              fmt::format("{} NICs, {} queue pairs", rows.nics.size(), rows.queue_pairs.size()),
              fmt::format("every {:g} s", view.interval)},
             view.width),
      view, view.stopped ? Style::warning : Style::head);
  double tx = 0;
  double rx = 0;
  double messages = 0;
  double resent = 0;
  for (const NicRow& nic : rows.nics) {
    tx += nic.tx_bps;
    rx += nic.rx_bps;
    messages += nic.messages_per_s;
    resent += nic.resent_per_s;
  }
  put(lines,
      joined(
          {fmt::format("total: send {}", rate_text(tx)), fmt::format("receive {}", rate_text(rx)),
           fmt::format("{} msgs/s", count_text(messages)),
           fmt::format("{} resent/s", count_text(resent))},
          view.width),
      view);
  if (!rows.fabric.emulated) return;
  const auto at = [](const std::string& place) { return place.empty() ? "" : " at " + place; };
  put(lines,
      joined({fmt::format("deepest switch queue: {}{}",
                          size_text(static_cast<double>(rows.fabric.queued_bytes)),
                          at(rows.fabric.queued_at)),
              fmt::format("most {}{}", size_text(static_cast<double>(rows.fabric.most_bytes)),
                          at(rows.fabric.most_at))},
             view.width),
      view);
}

std::string notes_of(const NicRow& nic) {
  std::string note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : ", ") + text; };
  if (nic.guard != 0) add(fmt::format("GUARD {}", nic.guard));
  if (nic.plugin_quarantines != 0) add(fmt::format("QUARANTINE {}", nic.plugin_quarantines));
  if (nic.loans_overdue != 0) add(fmt::format("LOANS OVERDUE {}", nic.loans_overdue));
  if (nic.epoch != 0) add(fmt::format("arm {} of a trial", nic.arm));
  return note;
}

// A value of nothing is not a warning.
Style warn_above(double value, double least) {
  return value >= least ? Style::warning : Style::plain;
}

// The rows of a part that has `room` lines, including its head; a last line tells how many more
// rows there are.
void put_table(Lines& lines, const TextTable& table, std::size_t rows, std::size_t left_out,
               const TopView& view) {
  for (std::string& line : table.lines(view.width, view.colour)) lines.push_back(std::move(line));
  if (rows == 0) put(lines, left_out == 0 ? "(no queue pairs)" : "", view);
  if (left_out != 0 && rows != 0) put(lines, fmt::format("({} more)", left_out), view);
}

void put_nics(Lines& lines, const TopRows& rows, const TopView& view, std::size_t first,
              std::size_t room) {
  const bool any_notes = std::any_of(rows.nics.begin(), rows.nics.end(),
                                     [](const NicRow& nic) { return !notes_of(nic).empty(); });
  TextTable table({{"NIC", true, 6, 0},
                   {"CC", true, 7, 6},
                   {"send", false, 9, 0},
                   {"receive", false, 9, 0},
                   {"msgs/s", false, 7, 8},
                   {"p99", false, 6, 9},
                   {"marked", false, 6, 3},
                   {"CNPs/s", false, 6, 7},
                   {"resent/s", false, 8, 5},
                   {"queue", false, 7, 2},
                   {"QPs", false, 3, 10},
                   {"limited by", true, 15, 4},
                   {any_notes ? "note" : "", true, 0, 1}});
  const std::size_t all = rows.nics.size();
  const std::size_t begin = std::min(first, all);
  const bool fits = room == 0 || all - begin + 1 <= room;
  const std::size_t count = fits ? all - begin : std::max<std::size_t>(room, 3) - 2;
  for (std::size_t i = begin; i < begin + count; ++i) {
    const NicRow& nic = rows.nics[i];
    table.add(
        {{nic.name, nic.guard != 0 ? Style::bad : Style::plain},
         {nic.algorithm},
         {rate_text(nic.tx_bps)},
         {rate_text(nic.rx_bps)},
         {count_text(nic.messages_per_s)},
         {nic.p99_slowdown > 0 ? fmt::format("{:.1f}x", nic.p99_slowdown) : "-"},
         {fmt::format("{:.1f} %", nic.marked_share * 100), warn_above(nic.marked_share, 0.01)},
         {count_text(nic.cnps_per_s)},
         {count_text(nic.resent_per_s), warn_above(nic.resent_per_s, 0.05)},
         {size_text(static_cast<double>(nic.queue_bytes))},
         {std::to_string(nic.queue_pairs)},
         {main_limiter(nic.limited)},
         {notes_of(nic), Style::bad}});
  }
  put_table(lines, table, std::max<std::size_t>(count, 1), all - begin - count, view);
}

void put_pairs(Lines& lines, const std::vector<PairRow>& pairs, bool peers, const TopView& view,
               std::size_t room) {
  TextTable table({{"NIC", true, 4, 3},
                   {peers ? "QPs" : "QP", false, peers ? 3U : 6U, peers ? 9U : 1U},
                   {"peer", true, 10, 0},
                   {"type", true, 4, 11},
                   {"state", true, 5, 10},
                   {"send", false, 9, 0},
                   {"receive", false, 9, 0},
                   {"allowed", false, 9, 4},
                   {"RTT us", false, 7, 5},
                   {"least", false, 6, 8},
                   {"CNPs/s", false, 6, 7},
                   {"resent/s", false, 8, 6},
                   {"backlog", false, 7, 6},
                   {"limited by", true, 15, 2}});
  const std::size_t begin = std::min(view.first, pairs.size());
  const bool fits = room == 0 || pairs.size() - begin + 1 <= room;
  const std::size_t count = fits ? pairs.size() - begin : std::max<std::size_t>(room, 2) - 2;
  for (std::size_t i = begin; i < begin + count; ++i) {
    const PairRow& pair = pairs[i];
    table.add({{pair.nic},
               {std::to_string(peers ? pair.pairs : pair.number)},
               {pair.peer},
               {pair.type},
               {pair.state, pair.state == "ERR" ? Style::bad : Style::plain},
               {rate_text(pair.tx_bps)},
               {rate_text(pair.rx_bps)},
               {rate_text(pair.allowed_bps)},
               {micros_text(pair.rtt_us)},
               {micros_text(pair.min_rtt_us)},
               {count_text(pair.cnps_per_s)},
               {count_text(pair.resent_per_s), warn_above(pair.resent_per_s, 0.05)},
               {size_text(static_cast<double>(pair.backlog_bytes))},
               {main_limiter(pair.limited) + (pair.on_fallback ? ", on fallback" : "")}});
  }
  put_table(lines, table, count, pairs.size() - begin - count, view);
}

}  // namespace

std::string rate_text(double bits_per_second) { return scaled(bits_per_second, "b/s"); }

std::string size_text(double bytes) { return scaled(bytes, "B"); }

std::vector<std::string> top_lines(const TopRows& rows, const TopView& view) {
  Lines lines;
  put_head(lines, rows, view);
  const bool bounded = view.height != 0;
  const std::size_t keys = view.keys ? 1 : 0;
  // Lines left for tables.
  const auto room = [&] { return view.height - std::min(view.height, lines.size() + keys); };
  const bool nics_alone = view.table == TopTable::nics;
  if (nics_alone) {
    put_nics(lines, rows, view, view.first, bounded ? room() : 0);
  } else {
    const bool peers = view.table == TopTable::peers;
    const std::vector<PairRow>& pairs = peers ? rows.peers : rows.queue_pairs;
    // Both tables get what they need, or half; the second at least its head and one row.
    const std::size_t second = std::min(pairs.size() + 1, std::max<std::size_t>(room() / 2, 2));
    put_nics(lines, rows, view, 0,
             bounded ? std::max<std::size_t>(room(), second + 2) - second : 0);
    if (!bounded || room() > pairs.size() + 1) lines.emplace_back();
    put_pairs(lines, pairs, peers, view, bounded ? room() : 0);
  }
  if (!bounded) return lines;
  const std::size_t last = view.height - std::min(view.height, keys);
  lines.resize(std::min(lines.size(), last));
  if (view.keys) {
    lines.resize(last);
    put(lines,
        joined({"q quit", "n NICs", "p peers", "c queue pairs", "j k scroll", "space stop and go"},
               view.width),
        view, Style::head);
  }
  return lines;
}

std::string top_text(const TopRows& rows, const TopView& view) {
  std::string text;
  for (const std::string& line : top_lines(rows, view)) text += line + "\n";
  return text;
}

}  // namespace paceline::tools
