// Other modules in the places of some inside a model.
#pragma once

#include <c10/util/FunctionRef.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <string_view>
#include <typeinfo>

namespace brigade::training {

// What messages say of a conversion.
struct Conversion {
  std::string_view converter;   // the function that was called
  std::string_view declare_as;  // the type that a member should have
};

// `module` as a T; null for another class, one derived from T included, which may compute something else.
template <class T>
const T* exactly(const torch::nn::Module& module) {
  return typeid(module) == typeid(T) ? dynamic_cast<const T*>(&module) : nullptr;
}

// Calls `replacement` for every module inside `root`, at any depth, and puts what it gives, unless that is empty, in its place.
//
// Containers of libtorch hold modules of any type, so an element can be replaced. A class of its own holds a member by a handle of
// the member's type, beside the name that is registered: another module under that name would train and be saved, while forward
// calls the old one. So there, and where more handles to a module exist than those of its containers, it throws InvalidArgument
// with all such names, and replaces nothing.
void replace_modules(torch::nn::Module& root, const Conversion& conversion,
                     c10::function_ref<torch::nn::AnyModule(const torch::nn::Module&)> replacement);

}  // namespace brigade::training
