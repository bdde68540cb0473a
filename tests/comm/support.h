// Ranks as threads, and expected values by plain loops.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/comm/thread_group.h"
#include "comm/formats.h"

namespace brigade::comm::testing {

// Ends the process, with a message, when it is not destroyed in time: a hang is a failure of its own.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit = std::chrono::seconds(240))
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, limit, [this] { return is_done_; })) return;
          std::fprintf(stderr, "watchdog: participants still run after %lld s\n",
                       static_cast<long long>(limit.count()));
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::thread thread_;
};

// Longer than any watchdog, so that a sleeper that nobody wakes is not saved by looking again.
inline constexpr std::chrono::hours kNoLimit{24};
inline ThreadGroup::Options patient() { return {.time_without_progress = kNoLimit, .spin = false}; }

// Runs `body(member)` for every rank on a thread of its own; what each threw, or null.
template <class Body>
std::vector<std::exception_ptr> outcomes(ThreadGroup& group, Body body) {
  const Watchdog watchdog;
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(group.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(group.member(rank));
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

// As outcomes(), where nobody is to throw: the first failure is rethrown.
template <class Body>
void on_every_rank(ThreadGroup& group, Body body) {
  const auto thrown = outcomes(group, [&](Group& member) {
    try {
      body(member);
    } catch (const std::exception& error) {
      group.abort(member.rank(), error.what());
      throw;
    }
  });
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

// The message of an exception that must be an E.
template <class E>
std::string text_of(const std::exception_ptr& thrown) {
  if (!thrown) {
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }
  try {
    std::rethrow_exception(thrown);
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type was thrown: " << error.what();
    return {};
  }
}

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, Bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kUint8;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, Float16>) return DType::kFloat16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::kBFloat16;
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::kComplex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::kComplex128;
}

template <class T>
Piece piece(const std::vector<T>& in, std::vector<T>& out) {
  return {.dtype = dtype_of<T>(), .in = std::as_bytes(std::span(in)), .out = std::as_writable_bytes(std::span(out))};
}

template <class T>
Piece in_place(std::vector<T>& values) {
  return piece(values, values);
}

// Numbers of widely different size, so that the order of a sum shows in its bits; integers of any value, so that sums
// wrap.
template <class T, class Engine>
T any_value(Engine& engine) {
  if constexpr (kIsComplex<T>) {
    const auto real = any_value<typename T::value_type>(engine);
    return {real, any_value<typename T::value_type>(engine)};
  } else if constexpr (IsNarrow<T>) {
    return quotient_of<T>(any_value<float>(engine), 1 << 12);
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto fraction = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(engine));
    return std::ldexp(fraction, static_cast<int>(engine() % 24));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(engine() % 2)};
  } else {
    return static_cast<T>(engine());
  }
}

// A function of rank and seed.
template <class T>
std::vector<T> values_of(int rank, std::size_t count, std::uint32_t seed = 0) {
  std::seed_seq seeds = {static_cast<std::uint32_t>(rank), seed};
  std::mt19937_64 engine(seeds);
  std::vector<T> values(count);
  for (T& value : values) value = any_value<T>(engine);
  return values;
}

// Bits of a value, so that NaN equals itself and the zeros differ.
template <class T>
auto bits_of(T value) {
  if constexpr (kIsComplex<T>) {
    return std::pair(bits_of(value.real()), bits_of(value.imag()));
  } else if constexpr (std::is_same_v<T, Bool> || IsNarrow<T>) {
    return value.bits;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value);
  } else {
    return value;
  }
}

template <class T>
std::vector<decltype(bits_of(T()))> bits_of(const std::vector<T>& values) {
  std::vector<decltype(bits_of(T()))> bits;
  for (const T value : values) bits.push_back(bits_of(value));
  return bits;
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (op == ReduceOp::kSum && std::isnan(a + b)) return std::numeric_limits<T>::quiet_NaN();
    if (op == ReduceOp::kSum) return a + b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    if (op == ReduceOp::kSum) return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
  if (op == ReduceOp::kMin) return a < b ? a : b;
  return a > b ? a : b;
}

// T(begin, end) of group.h, word by word.
template <class T>
T tree(ReduceOp op, const std::vector<T>& values, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return values[begin];
  std::size_t p = 1;
  while (2 * p < end - begin) p *= 2;
  return combined(op, tree(op, values, begin, begin + p), tree(op, values, begin + p, end));
}

// The expected reduction of one element; divisors are floats.
template <class T>
T reduced(Reduction reduction, const std::vector<T>& column) {
  if (column.size() == 1 && reduction.divisor == 1.0) return column[0];
  const auto of = [&](auto part) {
    std::vector<decltype(part(column[0]))> parts;
    for (const T& value : column) parts.push_back(part(value));
    return parts;
  };
  if constexpr (kIsComplex<T>) {
    return {reduced(reduction, of([](T z) { return z.real(); })), reduced(reduction, of([](T z) { return z.imag(); }))};
  } else if constexpr (IsNarrow<T>) {
    const float undivided = reduced({.op = reduction.op}, of([](T x) { return value_of(x); }));
    return quotient_of<T>(undivided, reduction.divisor);
  } else if constexpr (std::is_same_v<T, Bool>) {
    const auto is_set = [](Bool x) { return x.bits != 0; };
    const bool all = std::all_of(column.begin(), column.end(), is_set);
    const bool any = std::any_of(column.begin(), column.end(), is_set);
    return {static_cast<std::uint8_t>(reduction.op == ReduceOp::kMin ? all : any)};
  } else if constexpr (std::is_floating_point_v<T>) {
    const T quotient = tree(reduction.op, column, 0, column.size()) / static_cast<T>(reduction.divisor);
    return std::isnan(quotient) ? std::numeric_limits<T>::quiet_NaN() : quotient;
  } else {
    return tree(reduction.op, column, 0, column.size());
  }
}

// Element by element.
template <class T>
std::vector<T> reduced(Reduction reduction, const std::vector<std::vector<T>>& inputs) {
  std::vector<T> result(inputs[0].size());
  for (std::size_t k = 0; k < result.size(); ++k) {
    std::vector<T> column;
    for (const std::vector<T>& input : inputs) column.push_back(input[k]);
    result[k] = reduced(reduction, column);
  }
  return result;
}

template <class T>
std::vector<std::vector<T>> values_of_all(int ranks, std::size_t count, std::uint32_t seed = 0) {
  std::vector<std::vector<T>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(values_of<T>(rank, count, seed));
  return all;
}

}  // namespace brigade::comm::testing
