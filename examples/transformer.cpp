// A small causal language model over bytes, trained on the text that Debian's package fortunes brings, which then writes.
//
//   transformer [STEPS]
#include <brigade/brigade.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <cstdio>

#include "steps.h"

using namespace brigade;

constexpr std::int64_t kWidth = 64, kHeads = 4, kLayers = 2, kLength = 64;

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})); }

struct BlockImpl : torch::nn::Module {
  torch::nn::LayerNorm norm1 = layer_norm(), norm2 = layer_norm();
  torch::nn::Linear qkv{kWidth, 3 * kWidth}, attended{kWidth, kWidth}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};

  BlockImpl() {
    register_module("norm1", norm1);
    register_module("qkv", qkv);
    register_module("attended", attended);
    register_module("norm2", norm2);
    register_module("up", up);
    register_module("down", down);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto rows = x.size(0), length = x.size(1);
    const auto heads =
        qkv(norm1(x)).view({rows, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto to_come = torch::ones({length, length}, torch::kBool).triu(1);
    const auto scores = torch::matmul(heads[0], heads[1].transpose(-1, -2)) / std::sqrt(kWidth / kHeads);
    const auto weights = scores.masked_fill(to_come, -INFINITY).softmax(-1);
    const auto seen = torch::matmul(weights, heads[2]).transpose(1, 2).reshape({rows, length, kWidth});
    const auto h = x + attended(seen);
    return h + down(torch::gelu(up(norm2(h))));
  }
};
TORCH_MODULE(Block);

struct LanguageModelImpl : torch::nn::Module {
  torch::nn::Embedding embed{256, kWidth};
  torch::Tensor position = register_parameter("position", torch::randn({kLength, kWidth}) * 0.02);
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm = layer_norm();
  torch::nn::Linear head{kWidth, 256};

  LanguageModelImpl() {
    for (std::int64_t i = 0; i < kLayers; ++i) blocks->push_back(Block());
    register_module("embed", embed);
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
  }

  // Scores of the byte after each one: [rows, length, 256].
  torch::Tensor forward(const torch::Tensor& bytes) {
    auto x = embed(bytes.to(torch::kLong)) + position.slice(0, 0, bytes.size(1));
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return head(norm(x));
  }
};
TORCH_MODULE(LanguageModel);

std::string written_by(LanguageModel& net, std::string text, std::int64_t bytes) {
  const torch::NoGradGuard no_grad;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto length = static_cast<std::int64_t>(std::min<std::size_t>(text.size(), kLength));
    const auto seen = torch::from_blob(text.data() + text.size() - length, {1, length}, torch::kByte);
    const auto scores = net->forward(seen)[0][-1];
    text += static_cast<char>(random::categorical(random::fold_in(random::key(5), i), scores).item<std::int64_t>());
  }
  return text;
}

void train(std::int64_t steps) {
  const torch::Tensor bytes =
      data::read_text({"/usr/share/games/fortunes/fortunes", "/usr/share/games/fortunes/science"});
  torch::manual_seed(0);
  DataParallel trainer([] { return LanguageModel(); },
                       {.optimizer = optim::adamw({.weight_decay = 0.01}),
                        .learning_rate = schedule::constant(2e-3).warmup(steps / 10).cosine(steps),
                        .clip = optim::clip_norm(1),
                        .global_batch = 32,
                        .logical_shards = 8});

  const data::Dataset rows = data::sequences(bytes, kLength);
  for (auto& batch : trainer.loader(rows, {.epochs = 1 + steps * 32 / rows.rows()})) {
    const StepReport report = trainer.step(batch, [](LanguageModel& net, const data::Shard& leaf) {
      return torch::cross_entropy_loss(net->forward(leaf.x).flatten(0, 1), leaf.y.flatten());
    });
    if (report.step % (steps / 10 + 1) == 0) {
      std::printf("step %ld: loss = %.4f, perplexity %.1f a byte\n", report.step, report.loss, std::exp(report.loss));
    }
    if (trainer.steps() == steps) break;
  }
  std::printf("%s\n", written_by(trainer.model(), "The ", 200).c_str());
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 400));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transformer: %s\n", error.what());
    return 1;
  }
}
