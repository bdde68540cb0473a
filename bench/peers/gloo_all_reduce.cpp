// Peer of bench_collectives: gloo::allreduce of float sums between two processes, over TCP as in c10d's
// ProcessGroupGloo. Reads requests of all_reduce (support/collective.h) and answers {"ns": per call}.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "support/collective.h"
#include "support/rounds.h"

namespace {

using namespace brigade::bench;
using Context = std::shared_ptr<gloo::Context>;

constexpr int kRanks = 2;

double measure(const Context& context, const Request& request) {
  Buffers buffers(request.collective, kRanks);
  const auto all_reduce = [&] {
    gloo::AllreduceOptions options(context);
    options.setInput(buffers.in.data(), buffers.in.size());
    options.setOutput(buffers.out.data(), buffers.out.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  };
  for (int i = 0; i < 3; ++i) all_reduce();
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
  return nanoseconds_per_call(request.calls, all_reduce);
}

Context connect(int rank, const std::string& folder) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "localhost";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, kRanks);
  context->connectFullMesh(store, device);
  return context;
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "brigade-gloo-XXXXXX").string();
  int to_other[2] = {};
  if (mkdtemp(folder.data()) == nullptr || pipe(to_other) != 0) return 1;
  // Requests reach rank 1 through a pipe, which it can wait on without using the processor.
  const pid_t other = fork();
  if (other == 0) {
    close(to_other[1]);
    const auto context = connect(1, folder);
    for (Request request; read(to_other[0], &request, sizeof request) == sizeof request;) {
      measure(context, request);
    }
    return 0;
  }
  close(to_other[0]);
  {
    const auto context = connect(0, folder);
    while (const auto request = read_request(std::cin)) {
      if (write(to_other[1], &*request, sizeof *request) != sizeof *request) return 1;
      std::printf("{\"ns\": %f}\n", measure(context, *request));
      std::fflush(stdout);
    }
    close(to_other[1]);
  }
  waitpid(other, nullptr, 0);
  std::filesystem::remove_all(folder);
}
