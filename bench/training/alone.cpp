#include "training/alone.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/rounds.h"

namespace brigade::bench {
namespace {

constexpr int kWarmUp = 5;

// It is this program itself, so that it is absent is no reason to go on without it.
nlohmann::json answer_of(Peer& other) {
  try {
    return other.read();
  } catch (const PeerAbsent& absent) {
    throw std::runtime_error(absent.what());
  }
}

}  // namespace

BothAlone::BothAlone(const Setting& setting, std::vector<std::string> command)
    : own_(our_step(setting, {.devices = 1})), other_("a device alone", std::move(command)) {
  for (int i = 0; i < kWarmUp; ++i) own_();
  answer_of(other_);
}

double BothAlone::nanoseconds(int calls) {
  other_.send(std::to_string(calls));
  const double own = nanoseconds_per_call(calls, [&] { own_(); });
  return (own + answer_of(other_).at("ns").get<double>()) / 2;
}

void serve_alone(const Setting& setting) {
  const Step step = our_step(setting, {.devices = 1});
  for (int i = 0; i < kWarmUp; ++i) step();
  const auto answer = [](const nlohmann::json& json) {
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
  };
  answer({{"peer", "a device alone"}});
  for (int calls = 0; std::cin >> calls;) answer({{"ns", nanoseconds_per_call(calls, [&] { step(); })}});
}

}  // namespace brigade::bench
