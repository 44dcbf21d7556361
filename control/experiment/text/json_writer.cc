#include "control/experiment/text/json_writer.h"

#include <cassert>
#include <nlohmann/json.hpp>

#include "control/experiment/text/number_text.h"

namespace paceline::experiment {
namespace {

// Bytes that are not UTF-8 become the replacement character, so that the file can be read back.
std::string quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) out_ += level.compact ? ", " : ",";
  if (!level.compact) out_.append("\n").append(2 * levels_.size(), ' ');
  level.empty = false;
}

void JsonWriter::begin(char bracket, Layout layout) {
  separate();
  const bool inside_compact = !levels_.empty() && levels_.back().compact;
  out_ += bracket;
  levels_.push_back({inside_compact || layout == Layout::compact, true});
}

void JsonWriter::end(char bracket) {
  assert(!levels_.empty() && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.compact) out_.append("\n").append(2 * levels_.size(), ' ');
  out_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  assert(!after_key_);
  separate();
  out_ += quoted(name);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  separate();
  out_ += quoted(text);
}

void JsonWriter::value(double number) {
  separate();
  out_ += number_text(number);
}

void JsonWriter::value(std::uint64_t number) {
  separate();
  out_ += std::to_string(number);
}

void JsonWriter::value(bool truth) {
  separate();
  out_ += truth ? "true" : "false";
}

std::string JsonWriter::finish() && {
  assert(levels_.empty());
  out_ += '\n';
  return std::move(out_);
}

}  // namespace paceline::experiment
