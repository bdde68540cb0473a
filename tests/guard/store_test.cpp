// What lies on the disk after a write, what is kept, and who may write.
#include "guard/store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "brigade/base/digest.h"
#include "brigade/base/error.h"
#include "guard/support.h"
#include "support/errors.h"

namespace brigade::guard {
namespace store_test {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(Store, WritesFourFilesForTheirOwnerAloneAndReadsThemBack) {
  const TemporaryFolder folder;
  const auto run = folder.path() / "runs" / "one";
  write(run, {42});
  EXPECT_THAT(names_in(run), ElementsAre(".lock", "step-00000042"));
  const auto step = run / "step-00000042";
  EXPECT_THAT(names_in(step), ElementsAre("manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"));
  for (const auto& made : {run.parent_path(), run, step}) EXPECT_EQ(mode_of(made), 0700u) << made;
  for (const auto& file : names_in(step)) EXPECT_EQ(mode_of(step / file), 0600u) << file;
  EXPECT_EQ(mode_of(run / ".lock"), 0600u);
  EXPECT_EQ(newest_in(run), example(42));
}

TEST(Store, ManifestHasSizeAndDigestOfEveryFile) {
  const TemporaryFolder folder;
  write(folder.path(), {7});
  const auto step = folder.path() / "step-00000007";
  const auto manifest = nlohmann::json::parse(text_of(step / "manifest.json"));
  EXPECT_EQ(manifest.at("format"), 1);
  EXPECT_EQ(manifest.at("step"), 7);
  EXPECT_EQ(manifest.at("files").size(), 3u);
  for (const auto& [name, entry] : manifest.at("files").items()) {
    const std::string text = text_of(step / name);
    EXPECT_EQ(entry.at("bytes"), text.size());
    EXPECT_EQ(std::stoull(entry.at("xxh3").get<std::string>(), nullptr, 16), digest_of(std::as_bytes(std::span(text))));
  }
  EXPECT_EQ(nlohmann::json::parse(text_of(step / "state.json")), example(7).state);
}

TEST(Store, NoFolderAndAnEmptyOneHaveNoCheckpoint) {
  const TemporaryFolder folder;
  EXPECT_EQ(newest_in(folder.path() / "absent"), std::nullopt);
  EXPECT_EQ(newest_in(folder.path()), std::nullopt);
}

TEST(Store, KeepsTheLastOnes) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2, 3, 10}, 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000003", "step-00000010"));
}

Loaded with_loss(std::int64_t step, const nlohmann::json& loss) {
  Loaded one = example(step);
  one.state["metrics"] = {{"loss", loss}};
  return one;
}

TEST(Store, KeepsTheBestBesides) {
  for (const Goal goal : {Goal::kSmallest, Goal::kLargest}) {
    const TemporaryFolder folder;
    const CheckpointerOptions options = {
        .folder = folder.path(), .keep_last = 1, .keep_best = Best{.metric = "loss", .goal = goal}};
    const double sign = goal == Goal::kSmallest ? 1 : -1;
    {
      Store store(system_calls(), options);
      store.write(content_of(example(0)));  // has no metric
      store.write(content_of(with_loss(1, sign * 0.9)));
      store.write(content_of(with_loss(2, sign * 0.3)));
      store.write(content_of(with_loss(3, sign * 0.3)));
      store.write(content_of(with_loss(4, "low")));
    }
    EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000002", "step-00000004"));
    Store again(system_calls(), options);
    again.write(content_of(with_loss(5, sign * 0.4)));
    EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000002", "step-00000005"));
    again.write(content_of(with_loss(6, sign * 0.2)));
    EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000006"));
  }
}

// Old ones go when there are enough sound ones after them.
TEST(Store, DamagedCheckpointsDoNotCountAmongThoseKept) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2, 3});
  std::filesystem::resize_file(folder.path() / "step-00000003" / "model.safetensors", 3);
  write(folder.path(), {4}, 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000002", "step-00000003", "step-00000004"));
}

TEST(Store, ReplacesTheCheckpointOfTheSameStep) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  Store store(system_calls(), {.folder = folder.path()});
  store.write(content_of(example(2, 1)));
  EXPECT_EQ(newest_in(folder.path()), example(2, 1));
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000001", "step-00000002"));
}

TEST(Store, RefusesAStepBeforeASoundOne) {
  const TemporaryFolder folder;
  write(folder.path(), {5, 9});
  Store store(system_calls(), {.folder = folder.path()});
  expect_error<InvalidArgument>([&] { store.write(content_of(example(7))); }, {"step 9", "step 7", "another folder"});
  EXPECT_EQ(newest_in(folder.path()), example(9));

  std::filesystem::resize_file(folder.path() / "step-00000009" / "state.json", 3);
  store.write(content_of(example(7)));
  std::optional<Loaded> found;
  const std::string said = logged_by([&] { found = newest_in(folder.path()); });
  EXPECT_EQ(found, example(7));
  EXPECT_THAT(said, HasSubstr("the checkpoint of step 9 cannot be used, so the one of step 7 is tried"));
}

TEST(Store, TwoWritersOfOneFolderAreRefused) {
  const TemporaryFolder folder;
  {
    const Store first(system_calls(), {.folder = folder.path()});
    expect_error<DataError>([&] { Store(system_calls(), {.folder = folder.path()}); },
                            {folder.path().string(), "another run writes its checkpoints here"});
  }
  const Store later(system_calls(), {.folder = folder.path()});
}

TEST(Store, RemovesWhatAnEarlierRunLeftUnfinished) {
  const TemporaryFolder folder;
  write(folder.path(), {1});
  for (const std::string name : {".tmp-step-00000002", ".tmp-old-step-00000000"}) {
    std::filesystem::create_directory(folder.path() / name);
    put_text(folder.path() / name / "model.safetensors", "half");
  }
  std::filesystem::create_directory(folder.path() / ".tmp-mine");
  put_text(folder.path() / ".tmp-mine" / "notes", "keep");
  const std::string said = logged_by([&] { Store(system_calls(), {.folder = folder.path()}); });
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", ".tmp-mine", "step-00000001"));
  EXPECT_EQ(text_of(folder.path() / ".tmp-mine" / "notes"), "keep");
  EXPECT_THAT(said, HasSubstr("holds files that are no checkpoint's"));
}

TEST(Store, NeitherFollowsLinksNorWaitsForPipes) {
  const TemporaryFolder folder;
  const auto elsewhere = folder.path() / "elsewhere";
  const auto run = folder.path() / "run";
  write(elsewhere, {3});
  write(run, {1, 2});

  // In place of a file, though what it leads to is sound.
  const auto model = run / "step-00000002" / "model.safetensors";
  std::filesystem::rename(model, folder.path() / "model");
  std::filesystem::create_symlink(folder.path() / "model", model);
  std::optional<Loaded> found;
  EXPECT_THAT(logged_by([&] { found = newest_in(run); }), HasSubstr(model.string() + ": it is no regular file"));
  EXPECT_EQ(found, example(1));
  std::filesystem::remove(model);
  ASSERT_EQ(::mkfifo(model.c_str(), 0600), 0);
  EXPECT_THAT(logged_by([&] { found = newest_in(run); }), HasSubstr(model.string() + ": it is no regular file"));
  EXPECT_EQ(found, example(1));

  // In place of a checkpoint.
  std::filesystem::create_directory_symlink(elsewhere / "step-00000003", run / "step-00000003");
  EXPECT_THAT(logged_by([&] { found = newest_in(run); }), HasSubstr("step-00000003: cannot be opened as a folder"));
  EXPECT_EQ(found, example(1));

  // In place of the manifest, the lock, and what is about to be written.
  for (const auto& [name, target] : {std::pair(std::string(".lock"), folder.path() / "victim")}) {
    std::filesystem::remove(run / name);
    std::filesystem::create_symlink(target, run / name);
    expect_error<DataError>([&] { Store(system_calls(), {.folder = run}); }, {".lock", "symbolic link"});
    EXPECT_FALSE(std::filesystem::exists(target));
    std::filesystem::remove(run / name);
    ASSERT_EQ(::mkfifo((run / name).c_str(), 0600), 0);
    expect_error<DataError>([&] { Store(system_calls(), {.folder = run}); }, {".lock", "no regular file"});
  }
}

TEST(Store, OptionsAndStepsThatCannotBeAreRefused) {
  const TemporaryFolder folder;
  EXPECT_ERROR(Store(system_calls(), {}), InvalidArgument, ".folder is empty");
  EXPECT_ERROR(Store(system_calls(), {.folder = folder.path(), .keep_last = 0}), InvalidArgument, ".keep_last is 0");
  EXPECT_ERROR(Store(system_calls(), {.folder = folder.path(), .keep_best = Best{}}), InvalidArgument, ".keep_best");
  EXPECT_ERROR(Store(system_calls(), {.folder = folder.write_text("file", "")}), DataError,
               "cannot be opened as a folder");
  Store store(system_calls(), {.folder = folder.path()});
  EXPECT_ERROR(store.write(content_of(example(-1))), InvalidArgument, "step is -1");
}

// What a producer throws leaves write(), and nothing of the checkpoint stays.
TEST(Store, AProducerThatThrowsLeavesNothing) {
  const TemporaryFolder folder;
  write(folder.path(), {1});
  Store store(system_calls(), {.folder = folder.path()});
  Content content = content_of(example(2));
  content.optimizer = [](const data::ByteSink&) { throw ShapeError("complex"); };
  EXPECT_ERROR(store.write(content), ShapeError, "complex");
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".lock", "step-00000001"));
}

TEST(Store, NoneThatCanBeUsedIsAnErrorAndNoNewBeginning) {
  const TemporaryFolder folder;
  write(folder.path(), {1, 2});
  for (const std::string step : {"step-00000001", "step-00000002"})
    std::filesystem::remove(folder.path() / step / "manifest.json");
  const std::string said = logged_by([&] {
    expect_error<DataError>([&] { newest_in(folder.path()); },
                            {"none of its 2 checkpoints can be used", "step-00000002"});
  });
  EXPECT_THAT(said, HasSubstr("there is none before it"));
}

// A reader meets a checkpoint that goes away, and takes a newer one.
TEST(Store, CanBeReadWhileItIsWritten) {
  const TemporaryFolder folder;
  write(folder.path(), {0}, 1);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    Store store(system_calls(), {.folder = folder.path(), .keep_last = 1});
    for (std::int64_t step = 1; step <= 150; ++step) store.write(content_of(example(step)));
    done = true;
  });
  std::int64_t last = 0;
  while (!done) {
    Loaded loaded;
    const bool found = use_newest(system_calls(), folder.path(), [&](const Stored& stored) {
      stored.verify();
      loaded.step = stored.step();
    });
    EXPECT_TRUE(found);
    EXPECT_GE(loaded.step, last);
    last = loaded.step;
  }
  writer.join();
  EXPECT_EQ(newest_in(folder.path()), example(150));
}

}  // namespace store_test
}  // namespace brigade::guard
