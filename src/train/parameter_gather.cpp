#include "parameter_gather.h"

#include "gradient_measure.h"

namespace brigade::training {

void gather_parameters(const Layout& layout, const Flat& own, const std::vector<BlockRange>& written,
                       comm::Group& group, std::source_location site) {
  std::vector<std::vector<comm::Piece>> pieces(written.size());
  std::vector<comm::Pending> pending;
  for (std::size_t root = 0; root < written.size(); ++root) {
    for (const Part& part : layout.parts(written[root])) {
      with_elements(layout, own, part, [&](auto elements) {
        const std::span<std::byte> bytes = std::as_writable_bytes(elements);
        pieces[root].push_back({.dtype = comm::DType::kUint8,
                                .in = static_cast<int>(root) == group.rank() ? bytes : std::span<std::byte>(),
                                .out = bytes});
      });
    }
    if (pieces[root].empty()) continue;
    pending.push_back(
        group.start({.operation = comm::Operation::kBroadcast, .root = static_cast<int>(root), .pieces = pieces[root]},
                    {.tag = "parameters", .site = site}));
  }
  for (comm::Pending& one : pending) one.wait();
}

}  // namespace brigade::training
