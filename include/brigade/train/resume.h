// How a run continues from a checkpoint, and where in its data.
#pragma once

#include <cstdint>
#include <filesystem>

#include "brigade/data/loader.h"
#include "brigade/guard/checkpoint.h"

namespace brigade::training {

// When the options of a run are not those of the checkpoint's: its rate, rows of a step, rule, seed or precision.
enum class OtherOptions : std::uint8_t {
  kRefuse,  // InvalidArgument, with both sides: the run would not go on as if it had never stopped
  kWarn,    // it goes on with the new ones, and the log says so
};

struct RestoreOptions {
  OtherOptions other_options = OtherOptions::kRefuse;
};

// Puts the loader's position into a checkpoint, and a loader where that says. seek() throws InvalidArgument, and leaves the
// loader where it is, when the checkpoint has no position or the loader's epochs have another number of steps.
void put_position(const data::Loader& loader, guard::Checkpoint& checkpoint);
void seek(data::Loader& loader, const guard::Checkpoint& checkpoint);

namespace detail {

// The newest checkpoint of a folder. Throws DataError when there is none.
guard::Checkpoint newest_or_throw(const std::filesystem::path& folder);

// Writes one, and returns when it is on the disk.
void save_now(guard::Checkpoint checkpoint, const std::filesystem::path& folder);

}  // namespace detail
}  // namespace brigade::training
