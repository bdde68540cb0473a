#include "training/peers.h"

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

namespace brigade::bench {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "brigade_bench_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made: " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> command(Library library, const Setting& setting, const std::filesystem::path& start) {
  const bool is_pytorch = library == Library::kPytorch;
  return {is_pytorch ? BRIGADE_BENCH_TORCH_PYTHON : BRIGADE_BENCH_JAX_PYTHON,
          "-B",  // leaves no compiled files in the checkout
          std::string(BRIGADE_BENCH_PEERS) + (is_pytorch ? "/ddp_step.py" : "/jax_step.py"),
          "--model",
          setting.model,
          "--devices",
          std::to_string(setting.devices),
          "--batch",
          std::to_string(setting.batch),
          "--hidden",
          std::to_string(setting.hidden),
          "--start",
          start.string()};
}

}  // namespace

TrainingPeer::TrainingPeer(Library library, const Setting& setting, Report& report)
    : name_(library == Library::kPytorch ? "PyTorch DDP" : "JAX pmap"), report_(report) {
  const TemporaryFolder folder;
  const std::filesystem::path start = folder.path() / "start.safetensors";
  data::write_safetensors(start, setting.start);
  try {
    auto program = std::make_unique<Peer>(name_, command(library, setting, start));
    loss_ = program->read().at("loss");
    program_ = std::move(program);
  } catch (const PeerAbsent& absent) {
    leave_out(absent);
  }
}

double TrainingPeer::step_nanoseconds() {
  if (!program_) throw PeerAbsent(name_ + ": is absent");
  try {
    return 1e3 * program_->ask("").at("step_us").get<double>();
  } catch (const PeerAbsent& absent) {
    leave_out(absent);
    throw;
  }
}

void TrainingPeer::leave_out(const PeerAbsent& reason) {
  program_.reset();
  report_.note(std::string("left out: ") + reason.what());
}

}  // namespace brigade::bench
