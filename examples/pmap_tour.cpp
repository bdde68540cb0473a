// What docs/pmap.md says, as a program. Every block of code on that page is a section of this file, from `// [name]` to
// `// [/name]`, in the same order, and what a section prints stands below it there.
#include <brigade/brigade.h>
#include <c10/util/Type.h>

#include <algorithm>
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace brigade;

namespace {

std::string text(const torch::Tensor& tensor) {
  if (tensor.dim() == 0) {
    if (!tensor.is_floating_point()) return std::to_string(tensor.item<std::int64_t>());
    std::ostringstream number;
    number << tensor.item<double>();
    return number.str();
  }
  std::string list;
  for (std::int64_t i = 0; i < tensor.size(0); ++i) list += (i > 0 ? ", " : "") + text(tensor[i]);
  return "[" + list + "]";
}

void show(std::string_view what, const torch::Tensor& value) { std::cout << what << ": " << text(value) << '\n'; }

template <class Value>
void show(std::string_view what, const Value& value) {
  std::cout << what << ": " << std::boolalpha << value << '\n';
}

std::string in_lines_of_100(std::string words) {
  std::size_t begin = 0, space = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == '\n') begin = i + 1;
    if (words[i] == ' ') space = i;
    if (i - begin >= 100 && space > begin) {
      words[space] = '\n';
      begin = space + 1;
    }
  }
  return words;
}

// What ends a message, advice and place, is left out, and so are line numbers, which every edit of this file would change.
std::string first_sentence(std::string_view message) {
  std::string sentence(message.substr(0, std::min(message.find(". "), message.rfind(" ("))));
  while (sentence.ends_with('\n')) sentence.pop_back();
  return std::regex_replace(sentence, std::regex(R"(\.cpp:\d+)"), ".cpp:N");
}

// Prints the type of what `call` throws, and the first sentence of its message.
template <class Call>
void complaint(const Call& call) {
  try {
    call();
    std::cout << "no complaint\n";
  } catch (const std::exception& error) {
    std::cout << in_lines_of_100(c10::demangle(typeid(error).name()) + ": " + first_sentence(error.what())) << '\n';
  }
}

void idea() {
  // [idea]
  auto centre = pmap([](torch::Tensor row) { return row - lax::pmean(row, "i"); }, {.axis_name = "i"});

  torch::Tensor x = torch::arange(12, torch::kFloat).reshape({4, 3});  // a row for each device
  Sharded<torch::Tensor> centred = centre(x);

  show("device 2 holds", centred[2]);
  show("together", centred.stack());
  // [/idea]
}

void axes() {
  // [axes]
  auto weigh = pmap(
      [](torch::Tensor column, torch::Tensor weights, double scale) {
        torch::Tensor sum = scale * (column * weights).sum();
        return std::pair(sum, weights);
      },
      {.in_axes = {1, none, none}, .out_axes = {0, none}});

  torch::Tensor x = torch::arange(8).reshape({2, 4});  // a column for each device
  const auto [sums, weights] = weigh(x, torch::tensor({10, 1}), 0.5).stack();
  show("sums", sums);
  show("weights", weights);
  // [/axes]
}

void sizes() {
  // [sizes]
  auto add = pmap([](torch::Tensor w, torch::Tensor x) { return w + x; });
  Sharded<torch::Tensor> on_three = replicate(torch::zeros({2}), {devices().begin(), devices().begin() + 3});
  show("three rows", add(on_three, torch::ones({3, 2})).stack());
  complaint([&] { add(on_three, torch::ones({10, 2})); });
  complaint([&] { add(torch::ones({5, 2}), torch::ones({5, 2})); });
  // [/sizes]
}

void donation() {
  // NOLINTBEGIN(bugprone-use-after-move): what happens then is what is shown
  // [donation]
  auto add_one = pmap([](torch::Tensor w) { return w.add_(1); });

  Sharded<torch::Tensor> w = replicate(torch::zeros({2}));
  const void* memory = w[3].data_ptr();
  w = add_one(std::move(w));
  show("w", w.unreplicate());
  show("where it was", w[3].data_ptr() == memory);

  Sharded<torch::Tensor> next = add_one(std::move(w));
  complaint([&] { w[3]; });
  complaint([&] { add_one(next); });
  // [/donation]
  // NOLINTEND(bugprone-use-after-move)
}

void training_step() {
  // [training]
  struct Line {
    torch::Tensor slope, offset;
  };
  auto step = pmap(
      [](Line line, torch::Tensor x, torch::Tensor y) {
        auto loss_of = [&](const Line& at) { return (at.slope * x + at.offset - y).square().mean(); };
        auto [loss, grads] = value_and_grad(loss_of, lax::reduce_mean("i"))(line);
        return std::pair(tree::map([](auto p, auto g) { return p - 0.25 * g; }, line, grads), loss);
      },
      {.axis_name = "i"});

  torch::Tensor x = torch::tensor({{1.0, 1.0}, {1.0, -1.0}, {-1.0, 1.0}, {-1.0, -1.0}});  // two points a device
  Sharded<Line> line = replicate(Line{torch::tensor(0.0), torch::tensor(0.0)});
  for (int k = 0; k < 3; ++k) {
    auto [next, loss] = unzip(step(std::move(line), x, 3 * x + 1));
    show("loss", loss.unreplicate());
    line = next;
  }
  show("slope", line.unreplicate().slope);
  // [/training]
}

void gradients() {
  // [gradients]
  auto share = pmap([](torch::Tensor x) { return x * lax::psum(x, "i"); }, {.axis_name = "i"});
  auto total = [&](const torch::Tensor& at) { return share(at).stack().sum(); };  // (x0 + x1 + x2 + x3)^2

  torch::Tensor x = torch::tensor({1.0, 2.0, 3.0, 6.0});
  show("first", grad(total)(x));
  show("second", grad([&](const torch::Tensor& at) { return grad(total)(at)[0]; })(x));
  // [/gradients]
}

void collectives() {
  // [collectives]
  auto on_all = [](auto body) { return pmap(body, {.axis_name = "i"})(torch::tensor({0, 10, 20, 30})).stack(); };

  show("psum", on_all([](torch::Tensor t) { return lax::psum(t, "i"); }));
  show("in groups", on_all([](torch::Tensor t) {
         return lax::pmean(t, "i", {.axis_index_groups = {{0}, {1, 2, 3}}});
       }));
  show("ppermute", on_all([](torch::Tensor t) { return lax::ppermute(t, "i", {{0, 1}, {1, 2}, {2, 3}}); }));
  show("pshuffle", on_all([](torch::Tensor t) { return lax::pshuffle(t, "i", {3, 2, 1, 0}); }));
  show("all_gather, on device 1", on_all([](torch::Tensor t) { return lax::all_gather(t, "i"); })[1]);
  // [/collectives]
}

void mesh() {
  // [mesh]
  auto sums = pmap([](torch::Tensor t) { return std::pair(lax::psum(t, "device"), lax::psum(t, "host")); },
                   {.mesh = Mesh{{"host", 2}, {"device", 2}}});
  const auto [in_a_host, across_hosts] = sums(torch::tensor({1, 20, 300, 4000})).stack();
  show("in a host", in_a_host);
  show("across hosts", across_hosts);
  // [/mesh]
}

void throwing() {
  // [throwing]
  auto add_up = pmap(
      [](torch::Tensor x) {
        if (x.item<float>() < 0) throw std::domain_error("a negative weight");
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  complaint([&] { add_up(torch::tensor({1.0, 2.0, -3.0, 4.0})); });
  show("thrown on", to_string(last_failure()->failures[0].device));
  show("the next call", add_up(torch::ones({4})).unreplicate());
  // [/throwing]
}

void gradient_of_psum() {
  // [gradient_of_psum]
  using torch::Tensor;
  auto loss = [](const Tensor& at, const Tensor& x) { return at * x; };
  auto sum_of_losses = [](const Tensor& at, const Tensor& x) { return lax::psum(at * x, "i"); };
  auto mean_of_losses = [](const Tensor& at, const Tensor& x) { return lax::pmean(at * x, "i"); };
  Tensor w = torch::tensor(5.0);  // the same everywhere, unlike x
  auto on_all = [](auto body) { return pmap(body, {.axis_name = "i"})(torch::tensor({1.0, 2.0, 3.0, 6.0})).stack(); };

  show("grad(loss)       ", on_all([&](Tensor x) { return grad(loss)(w, x); }));
  show("grad(psum(loss)) ", on_all([&](Tensor x) { return grad(sum_of_losses)(w, x); }));
  show("grad(pmean(loss))", on_all([&](Tensor x) { return grad(mean_of_losses)(w, x); }));
  show("pmean(grad(loss))", on_all([&](Tensor x) { return lax::pmean(grad(loss)(w, x), "i"); }));
  // [/gradient_of_psum]
}

void uneven_shards() {
  // [uneven_shards]
  auto means = pmap(
      [](torch::Tensor own) {
        return std::pair(lax::pmean(own.mean(), "i"), lax::pmean(own.mean(), "i", {.weight = own.size(0)}));
      },
      {.axis_name = "i"});
  Sharded<torch::Tensor> shards(
      {torch::tensor({9.0}), torch::tensor({1.0, 2.0, 3.0}), torch::tensor({4.0, 6.0}), torch::tensor({5.0, 5.0})});
  const auto [mean_of_means, mean_of_8_rows] = means(shards).unreplicate();
  show("mean of means", mean_of_means);
  show("mean of the 8 rows", mean_of_8_rows);

  auto masked_mean = pmap(
      [](torch::Tensor own, torch::Tensor real) {
        const auto [sum, count] = lax::psum(std::pair((own * real).sum(), real.sum()), "i");
        return sum / count;
      },
      {.axis_name = "i"});
  const auto [rows, mask] = pad_and_mask(torch::tensor({9.0, 1.0, 2.0, 3.0, 4.0, 5.0}), 4);
  show("rows", rows);
  show("mask", mask);
  show("mean of the 6 rows", masked_mean(rows, mask).unreplicate());
  // [/uneven_shards]
}

void refused() {
  // [refused]
  torch::Tensor x = torch::ones({4, 2}), w = torch::ones({2}).requires_grad_();
  complaint([&] { pmap([&](torch::Tensor row) { return row * w; })(x); });

  auto by_some = [](torch::Tensor t) { return lax::axis_index("i") == 3 ? t : lax::psum(t, "i"); };
  complaint([&] { pmap(by_some, {.axis_name = "i"})(x); });

  auto inner = pmap([](torch::Tensor t) { return t + 1; }, {.axis_name = "inner"});
  complaint([&] { pmap([&](torch::Tensor row) { return inner(row).stack(); }, {.axis_name = "outer"})(x); });
  // [/refused]
}

}  // namespace

int main() {
  try {
    set_cpu_devices(4);  // as on the page, whatever this machine has
    for (const auto section : {idea, axes, sizes, donation, training_step, gradients, collectives, mesh, throwing,
                               gradient_of_psum, uneven_shards, refused}) {
      section();
    }
  } catch (const std::exception& error) {
    std::cerr << "pmap_tour: " << error.what() << '\n';
    return 1;
  }
}
