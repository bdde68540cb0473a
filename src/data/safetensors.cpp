#include "brigade/data/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/errors.h"
#include "data/file_sink.h"
#include "data/pair.h"
#include "data/safetensors_format.h"
#include "data/tensor_bytes.h"

namespace brigade::data {
namespace {

// Shows every byte to an observer as it passes.
class ObservedSource final : public ByteSource {
 public:
  ObservedSource(ByteSource& source, const ByteSink& observer)
      : ByteSource(source.name()), source_(source), observer_(observer) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = source_.read(out);
    if (observer_) observer_(out.first(count));
    return count;
  }
  std::uint64_t at_most() const override { return source_.at_most(); }

 private:
  ByteSource& source_;
  const ByteSink& observer_;
};

// What the format is told of `tensor`; its values are looked at later.
SafeTensorsEntry describe(const std::string& name, const torch::Tensor& tensor) {
  const auto unwritable = [&](std::string_view problem) {
    throw InvalidArgument(fmt::format("safetensors: tensor {} cannot be written: {}", shown(name), problem));
  };
  if (!tensor.defined()) unwritable("it is undefined. Leave it out.");
  if (tensor.layout() != at::kStrided) unwritable("it is not dense. Write its to_dense().");
  const auto dtype = dtype_of(tensor.scalar_type());
  if (!dtype) unwritable(fmt::format("the format has no {}. Convert it.", c10::toString(tensor.scalar_type())));
  return {.name = name, .dtype = *dtype, .sizes = tensor.sizes().vec()};
}

}  // namespace

const torch::Tensor& SafeTensors::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [other, tensor] : tensors) names.push_back(other);
  const std::string nearest = nearest_name(name, names);
  throw DataError(fmt::format("There is no tensor {} among the {} of this safetensors file{}.", shown(name),
                              names.size(),
                              nearest.empty() ? std::string() : fmt::format("; did you mean {}?", shown(nearest))));
}

SafeTensors read_safetensors(const std::filesystem::path& file, const SafeTensorsOptions& options) {
  FileSource bytes(file, options.links);
  ObservedSource source(bytes, options.on_bytes);
  SafeTensorsHeader header =
      read_safetensors_header(source, {.header_bytes = options.max_header_bytes, .data_bytes = options.max_bytes});
  SafeTensors result;
  read_safetensors_data(source, header, [&result](const SafeTensorsEntry& entry) {
    torch::Tensor tensor = at::empty(entry.sizes, scalar_type_of(entry.dtype));
    result.tensors.emplace(entry.name, tensor);
    return bytes_of(tensor);
  });
  result.metadata = std::move(header.metadata);
  return result;
}

Dataset safetensors(const std::filesystem::path& file, const SafeTensorsDatasetOptions& options) {
  check_classes(options.classes);
  const SafeTensors content = read_safetensors(file, {.max_bytes = options.max_bytes});
  const auto part = [&](const std::string& name) {
    const auto found = content.tensors.find(name);
    if (found == content.tensors.end()) {
      refuse(file.string(), fmt::format("has no tensor {} among its {}. Say which two to take with .x and .y.",
                                        shown(name), content.tensors.size()));
    }
    return NamedTensor{.name = fmt::format("{}: tensor {}", file.string(), shown(name)), .tensor = found->second};
  };
  return pair_up(part(options.x), part(options.y), options.classes);
}

void write_safetensors(const ByteSink& sink, const TensorMap& tensors, const Metadata& metadata) {
  std::vector<SafeTensorsEntry> entries;
  entries.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) entries.push_back(describe(name, tensor));
  torch::Tensor current;  // a copy of one tensor at a time, where its memory is not what the file needs
  write_entries(
      std::move(entries), metadata,
      [&](const SafeTensorsEntry& entry) {
        current = tensors.at(entry.name).detach().resolve_neg().cpu().contiguous();
        return bytes_of(current);
      },
      sink);
}

void write_safetensors(const std::filesystem::path& file, const TensorMap& tensors, const Metadata& metadata) {
  FileSink target(file);
  write_safetensors([&target](std::span<const std::byte> bytes) { target.write(bytes); }, tensors, metadata);
  target.commit();
}

}  // namespace brigade::data
