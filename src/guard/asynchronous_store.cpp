#include "guard/asynchronous_store.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <exception>
#include <utility>

#include "brigade/base/error.h"
#include "brigade/base/log.h"

namespace brigade::guard {
namespace {

// A file larger than the process may write is an error of that call then, and not the end of the process. For threads of our own
// only: whoever unblocks a signal gets it.
void block_file_size_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

AsynchronousStore::AsynchronousStore(SystemCalls& calls, CheckpointerOptions options)
    : on_failure_(options.on_failure), store_(calls, std::move(options)) {}

AsynchronousStore::~AsynchronousStore() {
  try {
    if (const std::exception_ptr error = wait()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    log::error(error.what());
  }
}

void AsynchronousStore::write(Content content) {
  finish();
  step_ = content.step;
  under_way_ = std::async(std::launch::async, [this, taken = std::move(content)] {
    block_file_size_signal();
    store_.write(taken);
  });
}

void AsynchronousStore::finish() {
  const std::exception_ptr error = wait();
  if (!error) return;
  ++failures_;
  if (on_failure_ == OnFailure::kStop) std::rethrow_exception(error);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& problem) {
    log::error(fmt::format("{} The run goes on.", problem.what()));
  }
}

// What went wrong, with its step in front; null when nothing did.
std::exception_ptr AsynchronousStore::wait() {
  if (!under_way_.valid()) return nullptr;
  const auto text = [this](const std::exception& error) {
    return fmt::format("the checkpoint of step {} was not written: {}", step_, error.what());
  };
  try {
    under_way_.get();
    return nullptr;
  } catch (const InvalidArgument& error) {
    return std::make_exception_ptr(InvalidArgument(text(error)));
  } catch (const std::exception& error) {
    return std::make_exception_ptr(DataError(text(error)));
  }
}

}  // namespace brigade::guard
