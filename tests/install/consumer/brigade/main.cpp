#include <brigade/brigade.h>

#include <iostream>

int main() {
  brigade::set_cpu_devices(4);
  auto sum = brigade::pmap([](torch::Tensor x) { return brigade::lax::psum(x, "i"); }, {.axis_name = "i"});
  std::cout << sum(torch::arange(4))[3].item<int>() << '\n';
}
