#include <numbers>

#include "comm/compress/support.h"

namespace brigade::comm {
namespace powersgd_test {

using namespace testing;

// Column `k` of the orthonormal cosines of length n (DCT-II).
double cosine(std::size_t n, std::size_t k, std::size_t i) {
  const double size = std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n));
  return size *
         std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) * static_cast<double>(k) / static_cast<double>(n));
}

// The matrix with these singular values.
Numbers matrix_of(Matrix shape, const std::vector<double>& singular_values) {
  Numbers m;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < singular_values.size(); ++k) {
        sum += singular_values[k] * cosine(shape.rows, k + 1, row) * cosine(shape.columns, k + 2, column);
      }
      m.push_back(static_cast<float>(sum));
    }
  }
  return m;
}

double relative_error(const Numbers& in, const Numbers& out) {
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto x = static_cast<double>(in[i]), y = static_cast<double>(out[i]);
    squares += x * x;
    error += (x - y) * (x - y);
  }
  return std::sqrt(error / squares);
}

const std::vector<Matrix> kShapes = {{20, 30}, {64, 9}, {11, 257}, {300, 40}};

TEST(PowerSgd, KeepsMatricesOfItsRank) {
  for (const Matrix shape : kShapes) {
    for (std::size_t rank = 1; rank <= 4; ++rank) {
      for (const std::vector<double>& values : {std::vector<double>{3, 2, 1, 0.5}, {1, 1e-2, 1, 1}, {7, 7, 7, 7}}) {
        const Numbers in = matrix_of(shape, {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank)});
        const Codec codec = compress::powersgd({.rank = rank});
        ASSERT_LT(codec.encoded_bytes(shape), in.size() * sizeof(float));
        // The product with the start is rounded as if the smallest of its directions were as large as the largest.
        EXPECT_LT(relative_error(in, passed(codec, in, shape)), 2e-4)
            << shape.rows << " x " << shape.columns << ", " << rank;
      }
    }
  }
}

TEST(PowerSgd, KeepsMatricesOfALowerRank) {
  for (const Matrix shape : kShapes) {
    for (const std::vector<double>& values : {std::vector<double>{1}, {5, 4}, {1, 1e-3}}) {
      const Numbers in = matrix_of(shape, values);
      EXPECT_LT(relative_error(in, passed(compress::powersgd({.rank = 4}), in, shape)), 2e-4) << shape.rows;
    }
  }
}

// Power iteration, a step each time: what it comes to is what no matrix of that rank is nearer than (C. Eckart, G. Young, 1936).
TEST(PowerSgd, ComesToTheNearestMatrixOfItsRank) {
  const Matrix shape = {60, 45};
  const std::vector<double> values = {8, 6, 3, 2, 1, 0.5};
  const Numbers in = matrix_of(shape, values);
  double squares = 0, beyond = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    squares += values[k] * values[k];
    if (k >= 2) beyond += values[k] * values[k];
  }
  const double nearest = std::sqrt(beyond / squares);

  const Codec codec = compress::powersgd({.rank = 2});
  Message message(codec.encoded_bytes(shape));
  Numbers state(codec.state_size(shape)), next = state;
  std::vector<double> errors;
  for (std::uint32_t step = 0; step < 15; ++step) {
    codec.encode(in, shape, {.key = {1, step}, .state = state, .next_state = next}, message);
    std::swap(state, next);
    errors.push_back(relative_error(in, decoded(codec, message, shape)));
  }
  EXPECT_GT(errors.front(), nearest * 1.001);  // a random start is not there yet
  EXPECT_NEAR(errors.back(), nearest, 1e-6);
  for (std::size_t step = 1; step < errors.size(); ++step) EXPECT_LE(errors[step], errors[step - 1] + 1e-7) << step;
}

TEST(PowerSgd, SendsOrthonormalColumnsFirst) {
  const Matrix shape = {40, 33};
  constexpr std::size_t kRank = 4;
  const Message message = encoded(compress::powersgd({.rank = kRank}), numbers(shape.size()), shape);
  for (std::size_t a = 0; a < kRank; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double product = 0;
      for (std::size_t i = 0; i < shape.rows; ++i) {
        product += static_cast<double>(get<float>(message, 0, a * shape.rows + i)) *
                   static_cast<double>(get<float>(message, 0, b * shape.rows + i));
      }
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6) << a << ", " << b;
    }
  }
}

// P Q^T by a plain loop.
TEST(PowerSgd, DecodesTheProductOfItsFactors) {
  const Matrix shape = {13, 37};
  constexpr std::size_t kRank = 3;
  const Codec codec = compress::powersgd({.rank = kRank});
  Message message(codec.encoded_bytes(shape));
  const Numbers factors = numbers(message.size() / sizeof(float));
  std::memcpy(message.data(), factors.data(), message.size());
  const Numbers out = decoded(codec, message, shape);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      double sum = 0, size = 0;
      for (std::size_t k = 0; k < kRank; ++k) {
        const double product = static_cast<double>(factors[k * shape.rows + row]) *
                               static_cast<double>(factors[kRank * shape.rows + k * shape.columns + column]);
        sum += product;
        size += std::abs(product);
      }
      EXPECT_NEAR(out[row * shape.columns + column], sum, 4 * 0x1p-24 * size);
    }
  }
}

TEST(PowerSgd, LeavesVectorsAndSmallMatricesAsTheyAre) {
  for (const Matrix shape : {Matrix(1000), Matrix(1000, 1), Matrix(4, 1000), Matrix(8, 8)}) {
    const Numbers in = numbers(shape.size());
    EXPECT_EQ(compress::powersgd().encoded_bytes(shape), in.size() * sizeof(float));
    EXPECT_EQ(compress::powersgd().state_size(shape), 0U);
    EXPECT_EQ(passed(compress::powersgd(), in, shape), in);
  }
}

// A step without a gradient must not leave a state that no later step gets away from.
TEST(PowerSgd, StartsAnewAfterZeros) {
  const Matrix shape = {20, 30};
  const Codec codec = compress::powersgd({.rank = 2});
  Message message(codec.encoded_bytes(shape));
  Numbers state(codec.state_size(shape)), next = state;
  codec.encode(Numbers(shape.size()), shape, {.key = kKey, .state = state, .next_state = next}, message);
  EXPECT_EQ(decoded(codec, message, shape), Numbers(shape.size()));
  EXPECT_EQ(next, state);
  const Numbers in = matrix_of(shape, {2, 1});
  codec.encode(in, shape, {.key = kKey, .state = next, .next_state = state}, message);
  EXPECT_LT(relative_error(in, decoded(codec, message, shape)), 1e-4);
}

// From gradients of 1e-30 to some of 1e15, one step after the other.
TEST(PowerSgd, DoesNotDependOnTheSizeOfTheStepBefore) {
  const Matrix shape = {20, 30};
  const Codec codec = compress::powersgd({.rank = 2});
  Message message(codec.encoded_bytes(shape));
  Numbers state(codec.state_size(shape)), next = state;
  for (const double size : {1e-30, 1e15, 1e-30, 1.0}) {
    const Numbers in = matrix_of(shape, {2 * size, size});
    codec.encode(in, shape, {.key = kKey, .state = state, .next_state = next}, message);
    std::swap(state, next);
    EXPECT_LT(relative_error(in, decoded(codec, message, shape)), 1e-4) << size;
  }
}

TEST(PowerSgd, MakesTheTensorNanThatHoldsOne) {
  const Matrix shape = {20, 30};
  for (const float bad : {kNan, kInfinity}) {
    Numbers in = numbers(shape.size());
    in[77] = bad;
    for (const float x : passed(compress::powersgd(), in, shape)) ASSERT_TRUE(std::isnan(x));
  }
}

}  // namespace powersgd_test
}  // namespace brigade::comm
