#include "tools/workload/job_plans/simai_passes.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace paceline::workload {

namespace {

constexpr std::string_view kFirstOfMicroBatch = "embedding_layer";

// The layers with this name, from `begin` up to `end`.
std::vector<std::uint32_t> layers_named(const SimaiWorkload& w, std::string_view name,
                                        std::uint32_t begin, std::uint32_t end) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = begin; i < end; ++i) {
    if (w.layers[i].name == name) found.push_back(i);
  }
  return found;
}

// Where the passes through [begin, end), a micro-batch, end. A layer of the model takes several
// lines; it begins with the name of the first one. None where they do not come out even.
std::vector<std::uint32_t> ends_of_passes(const SimaiWorkload& w, std::uint32_t begin,
                                          std::uint32_t end, std::string& error) {
  std::vector<std::uint32_t> starts;
  if (begin + 1 < end) starts = layers_named(w, w.layers[begin + 1].name, begin, end);
  if (starts.empty() || starts.size() % w.vpp != 0) {
    error = fmt::format(
        "line {}: vpp = {}: expected a multiple of it of layers in the micro-batch that begins "
        "here; it has {}",
        w.layers[begin].line, w.vpp, starts.size());
    return {};
  }
  std::vector<std::uint32_t> ends;
  for (std::size_t i = starts.size() / w.vpp; i < starts.size(); i += starts.size() / w.vpp) {
    ends.push_back(starts[i]);
  }
  ends.push_back(end);
  return ends;
}

}  // namespace

PipelineShape pipeline_of(const SimaiWorkload& workload) {
  return {workload.pp, workload.vpp, workload.ga};
}

bool has_pipeline(const SimaiWorkload& workload) {
  return workload.pp > 1 && workload.pp_comm != 0;
}

config::Read<std::vector<SimaiStretch>> simai_stretches(const SimaiWorkload& workload) {
  const auto count = static_cast<std::uint32_t>(workload.layers.size());
  config::Read<std::vector<SimaiStretch>> out;
  if (!has_pipeline(workload)) {
    out.value.push_back({0, count, false, {}});
    return out;
  }
  const std::vector<std::uint32_t> begins = layers_named(workload, kFirstOfMicroBatch, 0, count);
  if (begins.size() != workload.ga) {
    out.errors.push_back(
        fmt::format("pp = {}, ga = {}: expected so many micro-batches, each with a layer {} before "
                    "it; the file "
                    "has {}",
                    workload.pp, workload.ga, kFirstOfMicroBatch, begins.size()));
    return out;
  }
  std::vector<std::vector<std::uint32_t>> ends;  // by micro-batch and chunk
  for (std::size_t i = 0; i < begins.size(); ++i) {
    std::uint32_t end = i + 1 < begins.size() ? begins[i + 1] : count;
    // The last part stands for work that is done once: it has as many layers as the first.
    if (i > 0 && i + 1 == begins.size()) end = std::min(count, begins[i] + begins[1] - begins[0]);
    std::string error;
    ends.push_back(ends_of_passes(workload, begins[i], end, error));
    if (!error.empty()) out.errors.push_back(std::move(error));
  }
  if (!out.ok()) return out;
  out.value.push_back({0, begins.front(), false, {}});
  for (const PipelinePass& pass : forward_order(pipeline_of(workload))) {
    const std::vector<std::uint32_t>& of = ends[pass.micro_batch];
    const std::uint32_t begin = pass.chunk == 0 ? begins[pass.micro_batch] : of[pass.chunk - 1];
    out.value.push_back({begin, of[pass.chunk], true, pass});
  }
  out.value.push_back({ends.back().back(), count, false, {}});
  return out;
}

}  // namespace paceline::workload
