// Plan files: what is compared, and where.
#include <algorithm>
#include <array>

#include "control/experiment/live/plan/plan_tables.h"

namespace paceline::experiment::live {

namespace {

using config::TomlMember;
using config::TomlNode;

class PlacesReader {
 public:
  PlacesReader(const TomlNode& root, Plan& out, config::ReadContext& context)
      : root_(root), out_(out), context_(context), errors_(*context.errors) {}

  void read() {
    read_arms();
    read_clusters();
  }

 private:
  using Type = TomlNode::Type;
  using Names = std::vector<std::string_view>;

  void fail(const TomlNode& node, std::string_view key, std::string_view why) {
    fail_at(context_, node, key, why);
  }

  template <class Take>
  void each_table(std::string_view key, Take take) {
    if (const TomlMember* m = root_.find(key)) config::each_table(m->value, key, context_, take);
  }

  std::string name_of(const TomlNode& table, std::string_view kind) {
    const TomlMember* m = table.find("name");
    if (m == nullptr) {
      errors_.add(table.where, fmt::format("a [[{}]] needs a name", kind));
      return {};
    }
    if (m->value.type != Type::text || m->value.text.empty()) {
      fail(m->value, fmt::format("{}.name", kind), "expected a text that is not empty");
      return {};
    }
    return m->value.text;
  }

  void read_texts(const TomlMember& m, std::string_view path, std::vector<std::string>& out) {
    if (m.value.type != Type::array) return fail(m.value, path, "expected an array of texts");
    for (const TomlNode& item : m.value.items) {
      if (item.type != Type::text || item.text.empty()) {
        fail(item, path, "expected texts that are not empty");
      } else if (std::find(out.begin(), out.end(), item.text) != out.end()) {
        fail(item, path, "is given twice");
      } else {
        out.push_back(item.text);
      }
    }
  }

  void read_arms() {
    each_table("arm", [&](const TomlNode& table) {
      config::Arm arm;
      arm.name = name_of(table, "arm");
      if (std::any_of(out_.arms.begin(), out_.arms.end(),
                      [&](const config::Arm& a) { return a.name == arm.name; })) {
        errors_.add(table.where, fmt::format("a second arm named \"{}\"", arm.name));
      }
      if (table.find("algorithm") == nullptr) {
        errors_.add(table.where, "an [[arm]] needs an algorithm");
      }
      constexpr std::array<std::string_view, 1> kName{"name"};
      read_cc_table(table, "arm", kName, arm.cc, context_);
      out_.arms.push_back(std::move(arm));
    });
    if (out_.arms.size() != 2) {
      errors_.add(root_.where, fmt::format("a live experiment compares two arms, the champion "
                                           "first; {} [[arm]] given",
                                           out_.arms.size()));
    }
  }

  void read_clusters() {
    std::vector<std::string> all;
    each_table("cluster", [&](const TomlNode& table) {
      Cluster cluster;
      cluster.line = table.where.line;
      cluster.name = name_of(table, "cluster");
      for (const Cluster& other : out_.clusters) {
        if (other.name == cluster.name) {
          errors_.add(table.where, fmt::format("a second cluster named \"{}\"", cluster.name));
        }
      }
      const Names valid{"name", "nics"};
      for (const TomlMember& m : table.members) {
        if (m.key == "nics") {
          read_texts(m, "cluster.nics", cluster.nics);
        } else if (m.key != "name") {
          report_unknown_key(m, "cluster", valid, context_);
        }
      }
      if (cluster.nics.empty()) {
        errors_.add(table.where, "a [[cluster]] needs nics = [...]");
      }
      for (const std::string& nic : cluster.nics) {
        if (std::find(all.begin(), all.end(), nic) != all.end()) {
          errors_.add(table.where, fmt::format("\"{}\" belongs to another cluster already; a NIC "
                                               "has one arm at a time",
                                               nic));
        }
        all.push_back(nic);
      }
      out_.clusters.push_back(std::move(cluster));
    });
    const TomlMember* nics = root_.find("nics");
    if (out_.design == Design::switchback) {
      if (!out_.clusters.empty()) {
        errors_.add(root_.find("cluster")->where,
                    "a switchback has all its NICs in one arm at a time: "
                    "nics = [...], or nothing for all, and no [[cluster]]");
      }
      out_.clusters.assign(1, Cluster{"all", {}, 0});
      if (nics != nullptr) read_texts(*nics, "nics", out_.clusters[0].nics);
      return;
    }
    if (nics != nullptr) {
      errors_.add(nics->where, "nics belongs to a switchback; here each [[cluster]] has its own");
    }
    const bool rails = out_.design == Design::paired_rails;
    if (rails ? out_.clusters.size() != 2 : out_.clusters.size() < 2) {
      errors_.add(root_.where,
                  fmt::format("{} needs {} [[cluster]]; {} given", to_text(out_.design),
                              rails ? "two" : "two or more", out_.clusters.size()));
    }
    if (!rails && out_.clusters.size() > kMostReceiverClusters) {
      errors_.add(root_.find("cluster")->where,
                  fmt::format("{} [[cluster]] given; {} has 2 to {}", out_.clusters.size(),
                              to_text(out_.design), kMostReceiverClusters));
    }
  }

  const TomlNode& root_;
  Plan& out_;
  config::ReadContext& context_;
  config::Diagnostics& errors_;
};

}  // namespace

void read_places(const TomlNode& root, Plan& out, config::ReadContext& context) {
  PlacesReader(root, out, context).read();
}

}  // namespace paceline::experiment::live
