// Codecs on one core: how many bytes of float32 each encodes and decodes a second, against memcpy of the same numbers, by turns; and
// how much smaller the message is, and how far what arrives is from what was sent.
//
// The numbers are normal, a tenth of them a hundred times as large: gradients have heavy tails. They are a 1024 x 1024 matrix.
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "brigade/comm/compress/codecs.h"
#include "brigade/comm/compress/distortion.h"
#include "support/aligned.h"
#include "support/report.h"
#include "support/rounds.h"

namespace {

namespace bench = brigade::bench;
namespace comm = brigade::comm;
namespace compress = brigade::compress;

constexpr comm::Matrix kShape = {1024, 1024};
constexpr auto kTime = std::chrono::milliseconds(10);

using Numbers = bench::AlignedVector<float>;

Numbers gradient() {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  Numbers numbers(kShape.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = normal(generator) * (generator() % 10 == 0 ? 1e-1F : 1e-3F);
  return numbers;
}

// One codec with the memory of its passage.
class Passage {
 public:
  Passage(comm::Codec codec, const Numbers& sent)
      : codec_(std::move(codec)),
        sent_(sent),
        state_(codec_.state_size(kShape)),
        next_(state_.size()),
        message_(codec_.encoded_bytes(kShape)),
        received_(kShape.size()) {}

  // States take turns, as in training.
  void encode() {
    codec_.encode(sent_, kShape, {.key = {1, step_++}, .state = state_, .next_state = next_}, message_);
    std::swap(state_, next_);
  }
  void decode() { codec_.decode(message_, kShape, received_); }

  std::string name() const { return codec_.describe(); }
  double times_smaller() const {
    return static_cast<double>(kShape.size() * sizeof(float)) / static_cast<double>(message_.size());
  }
  double relative_error() const { return comm::distortion(sent_, received_).relative(); }

 private:
  comm::Codec codec_;
  const Numbers& sent_;
  Numbers state_, next_;
  bench::AlignedVector<std::byte> message_;
  Numbers received_;
  std::uint32_t step_ = 0;
};

double gigabytes_per_second(const std::function<void()>& work) {
  const double guess = bench::nanoseconds_per_call(3, work);
  const double bytes = static_cast<double>(kShape.size() * sizeof(float));
  return bytes / bench::nanoseconds_per_call(bench::calls_to_fill(kTime, guess), work);
}

bench::Row fact(std::string name, double value, std::string unit) {
  return {.name = std::move(name), .ours = value, .unit = std::move(unit), .judged = true};
}

}  // namespace

int main() {
  bench::Report report("compress");
  const Numbers sent = gradient();
  Numbers copy(sent.size());
  const auto copy_all = [&] { std::memcpy(copy.data(), sent.data(), sent.size() * sizeof(float)); };
  std::vector<Passage> passages;
  for (const comm::Codec& codec :
       {compress::fp16(), compress::bf16(), compress::int8(), compress::onebit(), compress::topk(),
        compress::powersgd(), compress::error_feedback(compress::int8()), compress::error_feedback(compress::topk())}) {
    passages.emplace_back(codec, sent);
  }
  // The first passage, before a state has become what it will be.
  std::vector<double> errors;
  for (Passage& passage : passages) {
    passage.encode();
    passage.decode();
    errors.push_back(passage.relative_error());
  }

  struct Rounds {
    std::vector<bench::Round> encode, decode;
  };
  std::vector<Rounds> rounds(passages.size());
  bench::measure_rounds([&](int, double exchange) {
    for (std::size_t i = 0; i < passages.size(); ++i) {
      Passage& passage = passages[i];
      const auto measure = [&](const std::function<void()>& work) {
        return bench::Round{
            .exchange_ns = exchange, .ours = gigabytes_per_second(work), .peer = gigabytes_per_second(copy_all)};
      };
      rounds[i].encode.push_back(measure([&] { passage.encode(); }));
      rounds[i].decode.push_back(measure([&] { passage.decode(); }));
    }
  });
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const std::string name = passages[i].name();
    report.add(bench::summarise(name + ": encode vs memcpy", "GB/s", rounds[i].encode, bench::Better::kMore));
    report.add(bench::summarise(name + ": decode vs memcpy", "GB/s", rounds[i].decode, bench::Better::kMore));
    report.add(fact(name + ": times smaller", passages[i].times_smaller(), ""));
    report.add(fact(name + ": relative error", errors[i], ""));
  }
  return report.finish();
}
