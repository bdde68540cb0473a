#include "memory_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "brigade/base/digest.h"
#include "brigade/optim/block_sums.h"
#include "gradient_measure.h"

namespace brigade::training {
namespace {

std::span<std::byte> bytes_of(const Layout& layout, const Flat& flat, const Part& part) {
  return with_elements(layout, flat, part, [](auto elements) { return std::as_writable_bytes(elements); });
}

// f(block) for each block of a part.
template <class F>
void for_blocks(const Part& part, F f) {
  Part block = part;
  for (; block.begin < part.end; block.begin = block.end, ++block.first_block) {
    block.end = std::min(block.begin + optim::kBlockElements, part.end);
    f(std::as_const(block));
  }
}

// The bytes with one bit put right, when that gives the digest: 2^17 digests of a block of float32, a tenth of a second.
std::optional<std::vector<std::byte>> with_one_bit_changed(std::span<const std::byte> bytes, std::uint64_t digest) {
  std::vector<std::byte> changed(bytes.begin(), bytes.end());
  for (std::byte& byte : changed) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      byte ^= std::byte{1} << bit;
      if (digest_of(changed) == digest) return changed;
      byte ^= std::byte{1} << bit;
    }
  }
  return std::nullopt;
}

double value_at(std::span<const std::byte> bytes, std::size_t element, at::ScalarType dtype) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + element * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  };
  return dtype == at::kDouble ? read(double{}) : read(float{});
}

}  // namespace

MemoryAudit::MemoryAudit(const Layout& layout, std::span<const Flat> parameters, std::vector<NamedFlat> state,
                         std::size_t devices)
    : layout_(layout), findings_(devices) {
  Buffer& first = buffers_.emplace_back(Buffer{.digests = std::vector<std::uint64_t>(layout.blocks())});
  for (const Flat& copy : parameters) first.copies.push_back(&copy);
  for (const NamedFlat& one : state) {
    buffers_.push_back(
        {.name = std::string(one.name), .copies = {one.flat}, .digests = std::vector<std::uint64_t>(layout.blocks())});
  }
  record_all();
}

void MemoryAudit::record_all() {
  for (Buffer& buffer : buffers_) {
    for (std::size_t segment = 0; segment < layout_.segments().size(); ++segment)
      record(buffer, *buffer.copies.front(), whole(layout_, segment));
  }
}

void MemoryAudit::record(Buffer& buffer, const Flat& copy, const Part& part) {
  for_blocks(part,
             [&](const Part& block) { buffer.digests[block.first_block] = digest_of(bytes_of(layout_, copy, block)); });
}

void MemoryAudit::record(std::size_t segment) {
  record(buffers_.front(), *buffers_.front().copies.front(), whole(layout_, segment));
}

void MemoryAudit::record(const Flat& parameters, const Part& part) {
  record(buffers_.front(), parameters, part);
  for (std::size_t i = 1; i < buffers_.size(); ++i) record(buffers_[i], *buffers_[i].copies.front(), part);
}

void MemoryAudit::verify(std::size_t device, BlockRange share) {
  findings_[device].clear();
  const bool has_own = buffers_.front().copies.size() > 1;
  const BlockRange all = {.begin = 0, .end = layout_.blocks()};
  for (const Part& part : layout_.parts(has_own ? all : share)) verify(device, 0, has_own ? device : 0, part);
  const std::vector<Part> parts = layout_.parts(share);
  for (std::size_t buffer = 1; buffer < buffers_.size(); ++buffer) {
    for (const Part& part : parts) verify(device, buffer, 0, part);
  }
}

void MemoryAudit::verify(std::size_t device, std::size_t buffer, std::size_t copy, const Part& part) {
  for_blocks(part, [&](const Part& block) {
    const Finding finding = {.buffer = buffer, .copy = copy, .block = block};
    if (digest_of(bytes(finding)) != buffers_[buffer].digests[block.first_block]) findings_[device].push_back(finding);
  });
}

bool MemoryAudit::is_clean() const noexcept {
  return std::all_of(findings_.begin(), findings_.end(), [](const auto& found) { return found.empty(); });
}

std::span<std::byte> MemoryAudit::bytes(const Finding& finding) const {
  return bytes_of(layout_, *buffers_[finding.buffer].copies[finding.copy], finding.block);
}

std::optional<std::vector<std::byte>> MemoryAudit::what_was_there(const Finding& finding) const {
  const Buffer& buffer = buffers_[finding.buffer];
  const std::uint64_t digest = buffer.digests[finding.block.first_block];
  Finding other = finding;
  for (other.copy = 0; other.copy < buffer.copies.size(); ++other.copy) {
    const std::span<const std::byte> there = bytes(other);
    if (digest_of(there) == digest) return std::vector<std::byte>(there.begin(), there.end());
  }
  return with_one_bit_changed(bytes(finding), digest);
}

std::string MemoryAudit::describe() const {
  std::size_t blocks = 0;
  for (const auto& found : findings_) blocks += found.size();
  const auto device = static_cast<std::size_t>(this->device());
  const Finding& first = findings_[device].front();
  const Segment& segment = layout_.segments()[first.block.segment];
  const Buffer& buffer = buffers_[first.buffer];
  std::string text = buffer.name.empty() ? fmt::format("parameter {}", segment.name)
                                         : fmt::format("optimizer state {}.{}", buffer.name, segment.name);
  text += " was changed by no step: ";
  if (const auto expected = what_was_there(first)) {
    const std::span<const std::byte> found = bytes(first);
    const auto place = std::mismatch(found.begin(), found.end(), expected->begin()).first - found.begin();
    const std::size_t element = static_cast<std::size_t>(place) / c10::elementSize(segment.dtype);
    text += fmt::format("element {} is {} and was {}", first.block.begin + element,
                        value_at(found, element, segment.dtype), value_at(*expected, element, segment.dtype));
  } else {
    text += fmt::format("it differs somewhere in elements {} to {}, in more than one bit", first.block.begin,
                        first.block.end - 1);
  }
  text += buffer.copies.size() > 1 ? fmt::format(", on the replica of device {}", first.copy)
                                   : fmt::format(", in the share of device {}", device);
  if (blocks > 1) text += fmt::format("; {} more blocks of {} elements differ", blocks - 1, optim::kBlockElements);
  return text;
}

int MemoryAudit::device() const {
  const auto first = std::find_if(findings_.begin(), findings_.end(), [](const auto& found) { return !found.empty(); });
  return static_cast<int>(first - findings_.begin());
}

bool MemoryAudit::heal() {
  std::vector<std::pair<std::span<std::byte>, std::vector<std::byte>>> repairs;
  for (const auto& found : findings_) {
    for (const Finding& finding : found) {
      auto right = what_was_there(finding);
      if (!right) return false;
      repairs.emplace_back(bytes(finding), std::move(*right));
    }
  }
  for (const auto& [block, right] : repairs) std::copy(right.begin(), right.end(), block.begin());
  for (auto& found : findings_) found.clear();
  return true;
}

void MemoryAudit::accept() {
  for (auto& found : findings_) {
    for (const Finding& finding : found) {
      // Of several copies the owner's counts, which is about to be written and sent to the others.
      Buffer& buffer = buffers_[finding.buffer];
      if (buffer.copies.size() == 1) buffer.digests[finding.block.first_block] = digest_of(bytes(finding));
    }
    found.clear();
  }
}

std::uint64_t MemoryAudit::digest() const {
  Digest all;
  for (const Buffer& buffer : buffers_) {
    for (const Segment& segment : layout_.segments()) {
      const std::uint64_t tensor =
          digest_of(std::as_bytes(std::span(buffer.digests).subspan(segment.first_block, segment.blocks)));
      all.add(std::as_bytes(std::span(&tensor, 1)));
    }
  }
  return all.value();
}

}  // namespace brigade::training
