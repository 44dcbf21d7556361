#include "tools/top/fabric_look.h"

#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

void take_deepest(const nlohmann::json& queue, const char* depth, std::uint64_t& bytes,
                  std::string& at) {
  const auto found = queue.find(depth);
  if (found == queue.end() || !found->is_number_unsigned()) return;
  if (found->get<std::uint64_t>() <= bytes) return;
  bytes = found->get<std::uint64_t>();
  const auto name = [&](const char* key) {
    const auto text = queue.find(key);
    return text != queue.end() && text->is_string() ? printable(text->get<std::string>()) : "?";
  };
  at = name("from") + " > " + name("to");
}

}  // namespace

FabricLook fabric_look(const nlohmann::json& status) {
  FabricLook look;
  if (!status.is_object()) return look;
  for (const auto& worker : status.value("workers", nlohmann::json::array())) {
    const auto fabric = worker.is_object() ? worker.find("fabric") : worker.end();
    if (!worker.is_object() || fabric == worker.end() || !fabric->is_object()) continue;
    look.emulated = true;
    for (const auto& queue : fabric->value("queues", nlohmann::json::array())) {
      if (!queue.is_object()) continue;
      take_deepest(queue, "queued_bytes", look.queued_bytes, look.queued_at);
      take_deepest(queue, "most_bytes", look.most_bytes, look.most_at);
    }
  }
  return look;
}

}  // namespace paceline::tools
