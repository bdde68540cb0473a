// Peer of bench_collectives: MPI_Allreduce of float sums. Reads "<bytes> <calls>" and answers {"ns": per call}.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "support/aligned.h"
#include "support/rounds.h"

namespace {

struct Request {
  long bytes = 0;  // -1 ends the program
  long calls = 0;
};

// Ranks other than 0 wait without using the processor, which MPI's own waiting would.
Request next_request(int rank) {
  Request request;
  if (rank == 0) {
    if (std::scanf("%ld %ld", &request.bytes, &request.calls) != 2) request.bytes = -1;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int other = 1; other < ranks; ++other) MPI_Send(&request, 2, MPI_LONG, other, 0, MPI_COMM_WORLD);
    return request;
  }
  for (int arrived = 0; arrived == 0;) {
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Recv(&request, 2, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (true) {
    const Request request = next_request(rank);
    if (request.bytes < 0) break;
    const auto count = static_cast<std::size_t>(request.bytes) / sizeof(float);
    const brigade::bench::AlignedVector<float> in(count, 1.0F);
    brigade::bench::AlignedVector<float> out(count);
    const auto all_reduce = [&] {
      MPI_Allreduce(in.data(), out.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    for (int i = 0; i < 3; ++i) all_reduce();
    MPI_Barrier(MPI_COMM_WORLD);
    const double nanoseconds = brigade::bench::nanoseconds_per_call(static_cast<int>(request.calls), all_reduce);
    if (rank != 0) continue;
    std::printf("{\"ns\": %f}\n", nanoseconds);
    std::fflush(stdout);
  }
  MPI_Finalize();
}
