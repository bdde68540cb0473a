// Peer of bench_collectives: collectives of float between MPI's ranks. Reads requests (support/collective.h) and answers
// {"ns": per call}.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "support/collective.h"
#include "support/rounds.h"

namespace {

using namespace brigade::bench;
using brigade::comm::Operation;

struct World {
  int rank = 0;
  int ranks = 0;
};

// Ranks other than 0 wait without using the processor, which MPI's own waiting would. No calls: the end.
Request next_request(const World& world) {
  Request request;
  if (world.rank == 0) {
    request = read_request(std::cin).value_or(Request());
    for (int other = 1; other < world.ranks; ++other) {
      MPI_Send(&request, sizeof request, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    return request;
  }
  for (int arrived = 0; arrived == 0;) {
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  MPI_Recv(&request, sizeof request, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return request;
}

void call(const Collective& collective, Buffers& buffers, int root) {
  const float* in = buffers.in.data();
  float* out = buffers.out.data();
  const int block = static_cast<int>(collective.elements());
  switch (collective.operation) {
    case Operation::kAllReduce:
      MPI_Allreduce(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Operation::kReduceScatter:
      MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return;
    case Operation::kAllGather:
      MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
      return;
    case Operation::kAllToAll:
      MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
      return;
    case Operation::kBroadcast:
      MPI_Bcast(out, block, MPI_FLOAT, root, MPI_COMM_WORLD);
      return;
    default:
      MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  for (Request request; (request = next_request(world)).calls > 0;) {
    Buffers buffers(request.collective, world.ranks);
    int root = 0;
    const auto work = [&] {
      call(request.collective, buffers, root);
      root = (root + 1) % world.ranks;
    };
    for (int i = 0; i < 3; ++i) work();
    MPI_Barrier(MPI_COMM_WORLD);
    const double nanoseconds = nanoseconds_per_call(request.calls, work);
    if (world.rank != 0) continue;
    std::printf("{\"ns\": %f}\n", nanoseconds);
    std::fflush(stdout);
  }
  MPI_Finalize();
}
