#include "support/cases.h"

#include <complex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace brigade::cases {
namespace {

// Values of type Number, as recorded, stored as Stored.
template <class Number, class Stored = Number>
at::Tensor filled(const nlohmann::json& data, at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(shape, dtype);
  if (static_cast<std::size_t>(tensor.numel()) != data.size()) {
    throw std::runtime_error("recorded case: shape and number of values differ");
  }
  auto* out = static_cast<Stored*>(tensor.data_ptr());
  for (const nlohmann::json& value : data) *out++ = static_cast<Stored>(value.get<Number>());
  return tensor;
}

template <class Real>
at::Tensor filled_complex(const nlohmann::json& data, at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(shape, dtype);
  auto* out = static_cast<std::complex<Real>*>(tensor.data_ptr());
  for (const nlohmann::json& pair : data) {
    *out++ = {static_cast<Real>(pair.at(0).get<double>()), static_cast<Real>(pair.at(1).get<double>())};
  }
  return tensor;
}

}  // namespace

at::Tensor tensor_of(const nlohmann::json& array) {
  const auto dtype = array.at("dtype").get<std::string>();
  const auto shape = array.at("shape").get<std::vector<std::int64_t>>();
  const nlohmann::json& data = array.at("data");
  if (dtype == "bool") return filled<bool>(data, shape, at::kBool);
  if (dtype == "uint8") return filled<std::uint8_t>(data, shape, at::kByte);
  if (dtype == "int8") return filled<std::int8_t>(data, shape, at::kChar);
  if (dtype == "int16") return filled<std::int16_t>(data, shape, at::kShort);
  if (dtype == "uint16") return filled<std::uint16_t, std::int16_t>(data, shape, at::kShort);
  if (dtype == "int32") return filled<std::int32_t>(data, shape, at::kInt);
  if (dtype == "uint32") return filled<std::uint32_t, std::int32_t>(data, shape, at::kInt);
  if (dtype == "int64") return filled<std::int64_t>(data, shape, at::kLong);
  if (dtype == "uint64") return filled<std::uint64_t, std::int64_t>(data, shape, at::kLong);
  if (dtype == "float32") return filled<double, float>(data, shape, at::kFloat);
  if (dtype == "float64") return filled<double>(data, shape, at::kDouble);
  if (dtype == "complex64") return filled_complex<float>(data, shape, at::kComplexFloat);
  if (dtype == "complex128") return filled_complex<double>(data, shape, at::kComplexDouble);
  throw std::runtime_error("recorded case: unknown dtype " + dtype);
}

}  // namespace brigade::cases
