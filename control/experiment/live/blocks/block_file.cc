// blocks.jsonl
#include <fmt/format.h>

#include "control/experiment/live/blocks/block.h"
#include "control/experiment/text/json_reader.h"
#include "control/experiment/text/json_writer.h"

namespace paceline::experiment::live {

namespace {

using Json = JsonReader::Json;
constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();

double number_or_undefined(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : kUndefined;
}

SizeFigures read_figures(JsonReader& reader, const Json& item, const std::string& path) {
  SizeFigures out;
  if (!item.is_object()) {
    reader.error(path, "expected an object");
    return out;
  }
  out.begun = reader.whole(item, path, "begun");
  out.completed = reader.whole(item, path, "completed");
  out.failed = reader.whole(item, path, "failed");
  out.crossed = reader.whole(item, path, "crossed");
  return out;
}

BlockRecord read_record(JsonReader& reader, const Json& root) {
  BlockRecord out;
  reader.whole(root, "", "schema", 1, 1);
  out.place.block = static_cast<std::uint32_t>(reader.whole(root, "", "block", 0, kMost32));
  out.place.cluster = static_cast<std::uint32_t>(reader.whole(root, "", "cluster", 0, kMost32));
  out.place.arm = static_cast<std::uint8_t>(reader.whole(root, "", "arm", 0, 1));
  out.place.epoch = static_cast<std::uint8_t>(reader.whole(root, "", "epoch", 1, 255));
  out.begin_ns = reader.whole(root, "", "begin_ns");
  out.end_ns = reader.whole(root, "", "end_ns");
  out.channels = static_cast<std::uint32_t>(reader.whole(root, "", "channels", 0, kMost32));
  out.load = number_or_undefined(root, "load");
  const double missing = number_or_undefined(root, "telemetry_missing");
  out.telemetry_missing = missing >= 0 ? missing : 0;
  const Json& sizes = reader.array(root, "", "messages");
  if (sizes.size() != out.messages.size()) {
    reader.error("messages", fmt::format("expected {} sizes", out.messages.size()));
  }
  for (std::size_t s = 0; s < std::min(sizes.size(), out.messages.size()); ++s) {
    out.messages[s] = read_figures(reader, sizes[s], fmt::format("messages[{}]", s));
  }
  const Json& values = reader.object(root, "", "values");
  for (const auto& [name, value] : values.items()) {
    const auto metric = block_metric_named(name);
    if (!metric) continue;  // written by a later version
    if (!value.is_number()) {
      reader.error("values." + name, "expected a number");
    } else {
      out.values[*metric] = value.get<double>();
    }
  }
  out.why = reader.string(root, "", "discarded");
  out.discarded = out.why.empty()                 ? Discarded::no
                  : out.why.starts_with(kPartner) ? Discarded::with_partner
                                                  : Discarded::itself;
  return out;
}

}  // namespace

std::string record_line(const BlockRecord& record) {
  JsonWriter json;
  json.begin_object(JsonWriter::Layout::compact);
  json.member("schema", std::uint64_t{1});
  json.member("block", std::uint64_t{record.place.block});
  json.member("cluster", std::uint64_t{record.place.cluster});
  json.member("arm", std::uint64_t{record.place.arm});
  json.member("epoch", std::uint64_t{record.place.epoch});
  json.member("begin_ns", record.begin_ns);
  json.member("end_ns", record.end_ns);
  json.member("load", record.load);
  json.member("channels", std::uint64_t{record.channels});
  json.member("telemetry_missing", record.telemetry_missing);
  json.key("messages");
  json.begin_array();
  for (const SizeFigures& m : record.messages) {
    json.begin_object();
    json.member("begun", m.begun);
    json.member("completed", m.completed);
    json.member("failed", m.failed);
    json.member("crossed", m.crossed);
    json.end_object();
  }
  json.end_array();
  json.key("values");
  json.begin_object();
  for (std::size_t i = 0; i < kBlockMetrics; ++i) {
    const auto metric = static_cast<BlockMetric>(i);
    if (record.values[metric] == record.values[metric]) {  // NaN is left out
      json.member(info(metric).name, record.values[metric]);
    }
  }
  json.end_object();
  json.member("discarded", std::string_view(record.why));
  json.end_object();
  return std::move(json).finish();
}

config::Read<BlockFile> read_blocks(std::string_view text, const std::string& source) {
  config::Read<BlockFile> out;
  std::size_t line = 0;
  const std::size_t size = text.size();
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {  // the newline is written last
      out.value.cut_off = true;
      return out;
    }
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string where = fmt::format("{}:{}", source, line);
    const Json root = JsonReader::parse(one);
    if (!root.is_object()) {
      if (text.empty()) {
        out.value.cut_off = true;
        return out;
      }
      out.errors.push_back(where + ": not a JSON object");
      continue;
    }
    out.value.whole_bytes = size - text.size();
    JsonReader reader(where);
    BlockRecord record = read_record(reader, root);
    if (reader.errors().empty()) {
      out.value.records.push_back(std::move(record));
    } else {
      out.errors.insert(out.errors.end(), reader.errors().begin(), reader.errors().end());
    }
  }
  return out;
}

}  // namespace paceline::experiment::live
