// The system calls by which checkpoints are written and read back: the one place where tests make them fail and keep count.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace brigade::guard {

// Each function is the system call of its name, with that one's result and errno. Names are looked up in `folder`.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(int folder, const char* name, int flags, mode_t mode);
  virtual ssize_t read(int file, void* bytes, std::size_t size);
  virtual ssize_t write(int file, const void* bytes, std::size_t size);
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int rename(int folder, const char* from, const char* to);
  virtual int exchange(int folder, const char* one, const char* other);  // renameat2 with RENAME_EXCHANGE
  virtual int mkdir(int folder, const char* name, mode_t mode);
  virtual int unlink(int folder, const char* name, int flags);
};

// Those of the machine.
SystemCalls& system_calls();

}  // namespace brigade::guard
