// Runs a producer ahead of its consumer, on a thread of its own, by a bounded number of items.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace brigade::data {

template <class Item>
class Prefetcher {
 public:
  // `produce` gives nothing at its end, and is not called again after that or after it threw. At most `depth` (1 or
  // more) finished items wait.
  Prefetcher(std::function<std::optional<Item>()> produce, std::size_t depth)
      : produce_(std::move(produce)), depth_(depth), thread_([this] { run(); }) {}

  // Waits for the item in the making at most.
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Items in order, then nothing; an exception of the producer comes after the items before it, and at every later
  // call.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || finished_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<Item> item(std::move(ready_.front()));
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return item;
  }

 private:
  void run() {
    try {
      while (wait_for_room()) {
        std::optional<Item> item = produce_();
        if (!item) break;
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(*item));
        changed_.notify_all();
      }
      finish(nullptr);
    } catch (...) {
      finish(std::current_exception());
    }
  }

  // False when nobody wants another item.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || ready_.size() < depth_; });
    return !stopping_;
  }

  void finish(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    finished_ = true;
    changed_.notify_all();
  }

  const std::function<std::optional<Item>()> produce_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  std::exception_ptr error_;
  bool finished_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last, so that it finds everything else built
};

}  // namespace brigade::data
