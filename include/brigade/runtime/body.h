// What a thread is while it runs a device's body.
#pragma once

#include <memory>

namespace brigade {

// One thread inside every operator of the calling thread, while it lives. The bits of sums and products depend on how many
// there are.
class OneThreadInOperators {
 public:
  OneThreadInOperators() noexcept;
  ~OneThreadInOperators();
  OneThreadInOperators(const OneThreadInOperators&) = delete;
  OneThreadInOperators& operator=(const OneThreadInOperators&) = delete;

 private:
  int before_;
};

// A body's place on its axis, its device and its libtorch state, for further threads that carry on with the body. One thread at
// a time may do so, and what one has done must be visible to the next.
class BodyState {
 public:
  // Of the thread that runs a body now. Throws AxisError outside one.
  static BodyState current();
  ~BodyState();
  BodyState(BodyState&&) noexcept;
  BodyState& operator=(BodyState&&) noexcept;

  // Gives it to the calling thread while it lives. The BodyState, and the body, outlive it.
  class Lent {
   public:
    explicit Lent(const BodyState& state);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    class Taken;
    std::unique_ptr<Taken> taken_;
  };

 private:
  class Kept;
  explicit BodyState(std::unique_ptr<Kept> kept);
  std::unique_ptr<Kept> kept_;
};

}  // namespace brigade
