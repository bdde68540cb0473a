#include <brigade/comm/thread_group.h>

#include <iostream>
#include <thread>

int main() {
  using namespace brigade::comm;
  ThreadGroup group(2, {});
  float sums[2] = {};
  const auto add = [&](int rank) {
    const float mine = static_cast<float>(rank + 1);
    const Piece piece = {.dtype = DType::kFloat32,
                         .in = std::as_bytes(std::span(&mine, 1)),
                         .out = std::as_writable_bytes(std::span(&sums[rank], 1))};
    group.member(rank).all_reduce({}, {&piece, 1}, {.tag = "sum"});
  };
  std::thread other(add, 1);
  add(0);
  other.join();
  std::cout << sums[1] << '\n';
}
