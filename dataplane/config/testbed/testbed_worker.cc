// [[worker]].
#include <charconv>
#include <span>

#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/testbed/testbed_table.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

constexpr std::int64_t kMostCpu = 4095;

class WorkerReader {
 public:
  WorkerReader(Testbed& testbed, ReadContext& context) : testbed_(testbed), context_(context) {}

  void read(const TomlNode& table) {
    WorkerConfig worker;
    worker.where = to_string(table.where);
    read_testbed_table(
        table, "worker", worker_keys(), {"ports", "cpu"}, context_,
        [&](std::string_view name) { return worker_field(worker, name); },
        [&](const TomlMember& m) {
          if (m.key == "cpu") {
            take_cpu(m.value, worker);
          } else {
            read_texts(m, "worker", context_,
                       [&](const TomlNode& item) { take_queue(item, worker); });
          }
        });
    for (const std::string_view key : {"name", "ports"}) {
      const TomlMember* const m = table.find(key);
      if (m == nullptr) {
        context_.errors->add(table.where, fmt::format("a [[worker]] needs \"{}\"", key));
      } else if ((m->value.type == TomlNode::Type::text && m->value.text.empty()) ||
                 (m->value.type == TomlNode::Type::array && m->value.items.empty())) {
        fail_value(context_, m->value, fmt::format("worker.{}", key), "it must not be empty");
      }
    }
    for (const WorkerConfig& other : testbed_.workers) {
      const TomlMember* const name = table.find("name");
      if (name != nullptr && other.name == worker.name) {
        fail_value(context_, name->value, "worker.name", "another worker has this name");
      }
      const TomlMember* const cpu = table.find("cpu");
      if (cpu != nullptr && worker.cpu && other.cpu == worker.cpu) {
        fail_value(context_, cpu->value, "worker.cpu",
                   fmt::format("worker \"{}\" has this one", other.name));
      }
    }
    if (worker.hiccup > worker.stall_limit) {
      const TomlMember* m = table.find("hiccup");
      if (m == nullptr) m = table.find("stall_limit");
      fail_value(context_, m->value, fmt::format("worker.{}", m->key),
                 fmt::format("hiccup = {} must not be more than stall_limit = {}",
                             format_time(worker.hiccup), format_time(worker.stall_limit)));
    }
    testbed_.workers.push_back(std::move(worker));
  }

  // With workers, every queue has one: what arrives in one that nobody polls is lost.
  void check_queues(const TomlNode& list) {
    for (std::size_t p = 0; p < testbed_.ports.size(); ++p) {
      for (std::uint32_t q = 0; q < testbed_.ports[p].queues; ++q) {
        if (!served(p, q)) {
          context_.errors->add(list.where,
                               fmt::format("no worker serves \"{}\"", queue_name(p, q)));
        }
      }
    }
  }

 private:
  std::string queue_name(std::size_t port, std::uint32_t queue) const {
    const PortConfig& config = testbed_.ports[port];
    return config.queues == 1 ? config.name : fmt::format("{}:{}", config.name, queue);
  }

  bool served(std::size_t port, std::uint32_t queue) const {
    for (const WorkerConfig& worker : testbed_.workers) {
      if (has(worker, port, queue)) return true;
    }
    return false;
  }
  static bool has(const WorkerConfig& worker, std::size_t port, std::uint32_t queue) {
    return std::any_of(worker.queues.begin(), worker.queues.end(),
                       [&](const QueueConfig& q) { return q.port == port && q.queue == queue; });
  }

  void take_cpu(const TomlNode& node, WorkerConfig& worker) {
    if (node.type != TomlNode::Type::integer || node.integer < 0 || node.integer > kMostCpu) {
      return fail_value(context_, node, "worker.cpu",
                        fmt::format("expected an integer, allowed is [0 .. {}]", kMostCpu));
    }
    worker.cpu = static_cast<std::uint32_t>(node.integer);
  }

  // "host0" or "host0:1"; a name has no colon.
  void take_queue(const TomlNode& node, WorkerConfig& worker) {
    std::string_view name = node.text;
    std::uint32_t queue = 0;
    if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
      const std::string_view digits = name.substr(colon + 1);
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), queue);
      if (code == std::errc{} && end == digits.data() + digits.size()) {
        name = name.substr(0, colon);
      }
    }
    const std::size_t port = find_port(name);
    if (port == testbed_.ports.size()) {
      std::vector<std::string_view> names;
      for (const PortConfig& config : testbed_.ports) names.push_back(config.name);
      return fail_value(
          context_, node, "worker.ports",
          fmt::format("no port is named \"{}\"; there is {}", name, list_names(names)));
    }
    if (queue >= testbed_.ports[port].queues) {
      return fail_value(context_, node, "worker.ports",
                        fmt::format("port \"{}\" has {} of them, counted from 0", name,
                                    testbed_.ports[port].queues));
    }
    if (served(port, queue) || has(worker, port, queue)) {
      return fail_value(context_, node, "worker.ports", "it has a worker already");
    }
    worker.queues.push_back({port, queue});
  }

  std::size_t find_port(std::string_view name) const {
    std::size_t i = 0;
    while (i < testbed_.ports.size() && testbed_.ports[i].name != name) ++i;
    return i;
  }

  Testbed& testbed_;
  ReadContext& context_;
};

}  // namespace

void read_workers(const TomlNode& list, Testbed& testbed, ReadContext& context) {
  WorkerReader reader(testbed, context);
  const bool good = list.type == TomlNode::Type::array;
  read_tables(list, "worker", context, [&](const TomlNode& table) { reader.read(table); });
  if (good) reader.check_queues(list);
}

}  // namespace paceline::config
