#include "tools/testbed/device_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "dataplane/attach/text.h"
#include "tools/service_link/service_request.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

// In each tree: the socket of its owner.
constexpr const char* kSocketFile = "socket";

std::string guid_text(std::uint64_t network_order) {
  unsigned char b[8];
  std::memcpy(b, &network_order, sizeof(b));
  return fmt::format("{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}\n", b[0], b[1], b[2],
                     b[3], b[4], b[5], b[6], b[7]);
}

std::string gid_text(const std::array<std::byte, 16>& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", static_cast<unsigned>(gid[i]),
                        static_cast<unsigned>(gid[i + 1]));
  }
  return text + "\n";
}

// Files of /sys/class/infiniband/NAME/ports/PORT, in the kernel's words.
void add_port(std::vector<TreeFile>& out, const attach::NicInfo& nic, std::uint32_t number) {
  const std::string name = attach::text_of(nic.name);
  const std::string port = fmt::format("sys/class/infiniband/{}/ports/{}/", name, number);
  const bool up = attach::is_up(nic, number);
  out.push_back({port + "state", up ? "4: ACTIVE\n" : "1: DOWN\n"});
  out.push_back({port + "phys_state", up ? "5: LinkUp\n" : "3: Disabled\n"});
  out.push_back({port + "link_layer", "Ethernet\n"});
  out.push_back({port + "lid", fmt::format("{:#x}\n", attach::local_id_of(nic, number))});
  out.push_back({port + "lid_mask_count", "0\n"});
  out.push_back({port + "sm_lid", "0x0\n"});
  out.push_back({port + "sm_sl", "0\n"});
  out.push_back({port + "cap_mask", "0x00000000\n"});
  out.push_back(
      {port + "rate", fmt::format("{} Gb/sec\n", static_cast<double>(nic.rate_mbps) / 1e3)});
  out.push_back({port + "pkeys/0", "0xffff\n"});
  for (std::size_t i = 0; i < nic.gids.size(); ++i) {
    if (nic.gid_kinds[i] == attach::GidKind::none) continue;
    out.push_back({fmt::format("{}gids/{}", port, i), gid_text(attach::gid_of(nic, number, i))});
    out.push_back({fmt::format("{}gid_attrs/types/{}", port, i), "RoCE v2\n"});
    out.push_back({fmt::format("{}gid_attrs/ndevs/{}", port, i), name + "\n"});
  }
}

// Files of /sys/class/infiniband/NAME. The counters, which count all ports, are in the folder of
// port 1.
void add_device(std::vector<TreeFile>& out, const attach::NicInfo& nic, const NicListing& listing) {
  const std::string name = attach::text_of(nic.name);
  const std::string device = "sys/class/infiniband/" + name + "/";
  out.push_back({device + "node_type", "1: CA\n"});
  out.push_back({device + "node_desc", name + "\n"});
  out.push_back({device + "hca_type", "Paceline\n"});
  out.push_back({device + "hw_rev", fmt::format("{:#x}\n", attach::kMajor)});
  out.push_back({device + "fw_ver", listing.version + "\n"});
  out.push_back({device + "node_guid", guid_text(nic.guid)});
  out.push_back({device + "sys_image_guid", guid_text(nic.guid)});
  out.push_back({device + "device/numa_node", "-1\n"});
  for (std::uint32_t port = 1; port <= attach::ports_of(nic); ++port) add_port(out, nic, port);
  for (const std::string& counter : listing.counters) {
    out.push_back({device + "ports/1/" + counter, "0\n"});
  }
}

// Returns why the file was not written, or an empty text.
std::string write_files(const std::string& root, const std::vector<TreeFile>& files) {
  std::error_code error;
  for (const TreeFile& file : files) {
    const fs::path path = fs::path(root) / file.path;
    fs::create_directories(path.parent_path(), error);
    if (!error && file.link) {
      fs::create_symlink(file.text, path, error);
    } else if (!error) {
      std::ofstream out(path, std::ios::binary);
      if (!(out << file.text) || !out.flush()) error.assign(errno, std::generic_category());
    }
    if (error) return fmt::format("{}: {}", path.string(), error.message());
  }
  return {};
}

// Whether the folder belongs to this user: another user may have put one there.
bool is_own_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

std::uint64_t hash_of_text(const std::string& text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
  return hash;
}

std::string full_name(const std::string& socket) {
  return socket.starts_with('@') ? socket : fs::absolute(socket).lexically_normal().string();
}

// Prefix of the names of all trees of a service.
std::string trees_of(const std::string& socket) {
  return fmt::format("files-{:016x}-", hash_of_text(full_name(socket)));
}

bool has_ended(const std::string& socket) {
  const ServicePeer peer = service_peer(socket, attach::kNoPatience);
  return peer.pid == 0 && (peer.code == ENOENT || peer.code == ECONNREFUSED);
}

}  // namespace

std::vector<TreeFile> device_tree(const NicListing& listing) {
  const std::vector<attach::NicInfo>& nics = listing.nics;
  std::vector<TreeFile> out;
  out.push_back({"sys/class/infiniband_verbs/abi_version", "6\n"});
  out.push_back({"dev/infiniband/rdma_cm", "/dev/null", true});
  for (std::size_t i = 0; i < nics.size(); ++i) {
    if (nics[i].gone != 0) continue;
    const std::string verbs = fmt::format("sys/class/infiniband_verbs/uverbs{}/", i);
    out.push_back({fmt::format("dev/infiniband/uverbs{}", i), "/dev/null", true});
    out.push_back({verbs + "ibdev", attach::text_of(nics[i].name) + "\n"});
    out.push_back({verbs + "abi_version", "1\n"});
    add_device(out, nics[i], listing);
  }
  return out;
}

WrittenTree write_device_tree(const std::string& runtime, const std::string& socket,
                              const std::vector<TreeFile>& files) {
  std::string all;
  for (const TreeFile& file : files) all += file.path + '\n' + file.text;
  const std::string folder =
      fmt::format("{}/{}{:016x}", runtime, trees_of(socket), hash_of_text(all));
  if (is_own_folder(folder)) return {folder, {}};
  std::string made = folder + "-XXXXXX";
  if (::mkdtemp(made.data()) == nullptr) {
    return {{}, fmt::format("{}: {}", made, std::strerror(errno))};
  }
  std::string error = write_files(made, {{kSocketFile, full_name(socket)}});
  if (error.empty()) error = write_files(made, files);
  // Complete or not at all; a second process finds the first one's tree, which is the same.
  if (error.empty() && ::rename(made.c_str(), folder.c_str()) != 0 && !is_own_folder(folder)) {
    error = fmt::format("{}: {}", folder, std::strerror(errno));
  }
  std::error_code ignored;
  fs::remove_all(made, ignored);
  if (!error.empty()) return {{}, error};
  return {folder, {}};
}

void remove_device_trees(const std::string& runtime, const std::string& socket) {
  const std::string begin = trees_of(socket);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runtime, error)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(begin) || !is_own_folder(path)) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

void remove_left_trees(const std::string& runtime) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runtime, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("files-") || !is_own_folder(entry.path().string())) continue;
    std::string socket;
    std::getline(std::ifstream(entry.path() / kSocketFile), socket, '\0');
    // Its name must say the same, so that nothing else is removed.
    if (socket.empty() || !name.starts_with(trees_of(socket)) || !has_ended(socket)) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace paceline::tools
