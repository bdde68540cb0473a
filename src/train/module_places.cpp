#include "module_places.h"

#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "brigade/base/error.h"

namespace brigade::training {
namespace {

using torch::nn::AnyModule;
using torch::nn::Module;

struct Place {
  Module* parent;
  std::string key;   // in the parent
  std::string path;  // from the root
  std::weak_ptr<Module> module;
};

// All places inside `parent` whose modules are to be replaced; `by` says by what, once for each module.
class Places {
 public:
  Places(Module& root, c10::function_ref<AnyModule(const Module&)> replacement) : replacement_(replacement) {
    visit(root, "");
  }

  const std::vector<Place>& all() const noexcept { return places_; }
  const AnyModule& by(const Module* module) const { return by_.at(module); }
  std::int64_t count(const Module* module) const {
    return std::count_if(places_.begin(), places_.end(),
                         [module](const Place& place) { return place.module.lock().get() == module; });
  }

 private:
  void visit(Module& parent, const std::string& prefix) {
    if (!seen_.insert(&parent).second) return;
    for (const auto& child : parent.named_children()) {
      Module* const module = child.value().get();
      if (module == nullptr) continue;
      const std::string path = prefix + child.key();
      if (by_.find(module) == by_.end()) {
        AnyModule other = replacement_(*module);
        if (other.is_empty()) {
          visit(*module, path + ".");
          continue;
        }
        by_.emplace(module, std::move(other));
      }
      places_.push_back({&parent, child.key(), path, child.value()});
    }
  }

  c10::function_ref<AnyModule(const Module&)> replacement_;
  std::vector<Place> places_;
  std::unordered_map<const Module*, AnyModule> by_;
  std::unordered_set<const Module*> seen_;
};

// Where the parent, as a container, holds the module; null when it is none, or does not. All are boxes that take any module.
AnyModule* in_sequential(const Place& place) {
  auto* parent = dynamic_cast<torch::nn::SequentialImpl*>(place.parent);
  if (parent == nullptr) return nullptr;
  const auto module = place.module.lock();
  const auto found =
      std::find_if(parent->begin(), parent->end(), [&](const AnyModule& one) { return one.ptr() == module; });
  return found == parent->end() ? nullptr : &*found;
}

std::shared_ptr<Module>* in_list(const Place& place) {
  auto* parent = dynamic_cast<torch::nn::ModuleListImpl*>(place.parent);
  if (parent == nullptr) return nullptr;
  const auto found = std::find(parent->begin(), parent->end(), place.module.lock());
  return found == parent->end() ? nullptr : &*found;
}

torch::nn::ModuleDictImpl* in_dict(const Place& place) {
  auto* parent = dynamic_cast<torch::nn::ModuleDictImpl*>(place.parent);
  return parent != nullptr && parent->contains(place.key) && (*parent)[place.key] == place.module.lock() ? parent
                                                                                                         : nullptr;
}

bool is_in_container(const Place& place) {
  return in_sequential(place) != nullptr || in_list(place) != nullptr || in_dict(place) != nullptr;
}

// Why a module cannot be replaced; empty when it can.
std::string obstacle(const Places& places, const Place& place) {
  const std::shared_ptr<Module> module = place.module.lock();
  const std::string what = fmt::format("\"{}\" ({})", place.path, module->name());
  if (!is_in_container(place)) return what + " is a member of " + c10::demangle(typeid(*place.parent).name());
  // A container has two: its own, and the registered one. The last is the one here.
  if (module.use_count() > 2 * places.count(module.get()) + 1)
    return what + " is held by another handle besides its container's";
  return {};
}

void put(const Place& place, const AnyModule& other) {
  if (torch::nn::ModuleDictImpl* dict = in_dict(place))
    return dict->update(std::vector{std::pair(place.key, other.ptr())});
  if (AnyModule* element = in_sequential(place)) {
    *element = other;
  } else {
    *in_list(place) = other.ptr();
  }
  place.parent->replace_module(place.key, other.ptr());
}

}  // namespace

void replace_modules(Module& root, const Conversion& conversion,
                     c10::function_ref<AnyModule(const Module&)> replacement) {
  const auto refuse = [&](const std::string& what, std::string_view where) {
    throw InvalidArgument(
        fmt::format("{}: {}. Whoever holds a module by a handle of its own type goes on calling the old one, and a "
                    "converter cannot change "
                    "that, so nothing was replaced. Declare {} as {}, which takes the same options",
                    conversion.converter, what, where, conversion.declare_as));
  };
  if (!replacement(root).is_empty()) refuse(fmt::format("the model itself is a {}", root.name()), "it");
  const Places places(root, replacement);
  std::vector<std::string> obstacles;
  for (const Place& place : places.all()) {
    if (std::string text = obstacle(places, place); !text.empty()) obstacles.push_back(std::move(text));
  }
  if (!obstacles.empty()) refuse(fmt::format("{}", fmt::join(obstacles, "; ")), "such members");
  for (const Place& place : places.all()) {
    const auto module = place.module.lock();
    places.by(module.get()).ptr()->train(module->is_training());
    put(place, places.by(module.get()));
  }
}

}  // namespace brigade::training
