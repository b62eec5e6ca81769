#include "cgroup/systemd_bus.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "fake_manager.h"

namespace sandy::cgroup {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What is said of a scope on a bus.
Result<void> start_on(const ManagerAddress& address, ScopeLimits limits = {}) {
  asio::io_context io(1);
  Result<void> out = fail("test", "it never returned");
  auto opened = SystemdBus::open(io.get_executor(), address);
  if (!opened) return std::unexpected(opened.error());
  const auto bus = *opened;
  const auto run = [&]() -> asio::awaitable<void> {
    ScopeRequest request{"sandy-test.scope", "A test", 4711, limits};
    auto scope = bus->ask_for_scope(std::move(request));
    if (scope) {
      out = co_await bus->wait_for_scope(*scope);
    } else {
      out = std::unexpected(scope.error());
    }
    bus->close();
  };
  asio::co_spawn(io, run(), asio::detached);
  io.run_for(std::chrono::seconds(20));
  return out;
}

TEST(SystemdBus, StartsAScope) {
  FakeManager manager({});
  ScopeLimits limits;
  limits.memory = 64 << 20;
  limits.swap = 0;
  limits.cpus = 1.5;
  limits.pids = 20;
  const auto done = start_on(manager.address(), limits);
  ASSERT_TRUE(done) << done.error().text();
  // Subscribed before: else it would not be told of its job.
  EXPECT_THAT(manager.calls(), ElementsAre("Subscribe", AllOf(HasSubstr("sandy-test.scope fail"), HasSubstr("MemoryMax=67108864"), HasSubstr("MemorySwapMax=0"), HasSubstr("TasksMax=20"),
                                                              HasSubstr("CPUQuotaPerSecUSec=1500000"), HasSubstr("PIDs"), HasSubstr("Delegate"), HasSubstr("OOMPolicy"), Not(HasSubstr("IO")))));
}

// As without a bus between, where nobody subscribes.
TEST(SystemdBus, AsksTheManagerItself) {
  FakeManager::Behaviour behaviour;
  behaviour.is_bus = false;
  behaviour.unknown_property = "OOMPolicy";
  FakeManager manager(behaviour);
  const auto done = start_on(manager.address());
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(manager.calls(), ElementsAre(HasSubstr("OOMPolicy"), Not(HasSubstr("OOMPolicy"))));
}

TEST(SystemdBus, WaitsForItsOwnJob) {
  for (const bool is_bus : {true, false}) {
    FakeManager::Behaviour behaviour;
    behaviour.other_jobs_first = true;
    behaviour.is_bus = is_bus;
    FakeManager manager(behaviour);
    const auto done = start_on(manager.address());
    EXPECT_TRUE(done) << done.error().text();
  }
}

TEST(SystemdBus, AJobThatFails) {
  FakeManager::Behaviour behaviour;
  behaviour.result = "failed";
  FakeManager manager(behaviour);
  const auto done = start_on(manager.address());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), AllOf(HasSubstr("sandy-test.scope"), HasSubstr("failed"), HasSubstr("hint:")));
}

TEST(SystemdBus, ARefusal) {
  FakeManager::Behaviour behaviour;
  behaviour.error_name = "org.freedesktop.DBus.Error.AccessDenied";
  behaviour.error = "You may not";
  FakeManager manager(behaviour);
  const auto done = start_on(manager.address());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), AllOf(HasSubstr("You may not"), HasSubstr("AccessDenied")));
  EXPECT_EQ(manager.calls().size(), 2);
}

TEST(SystemdBus, AnOldOneThatKnowsNoOomPolicy) {
  FakeManager::Behaviour behaviour;
  behaviour.unknown_property = "OOMPolicy";
  FakeManager manager(behaviour);
  const auto done = start_on(manager.address());
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(manager.calls(), ElementsAre("Subscribe", HasSubstr("OOMPolicy"), AllOf(HasSubstr("Delegate"), Not(HasSubstr("OOMPolicy")))));
}

TEST(SystemdBus, AnUnknownLimitIsNotLeftOut) {
  FakeManager::Behaviour behaviour;
  behaviour.unknown_property = "MemorySwapMax";
  FakeManager manager(behaviour);
  ScopeLimits limits;
  limits.swap = 0;
  const auto done = start_on(manager.address(), limits);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("MemorySwapMax"));
}

class Silence : public testing::TestWithParam<const char*> {};

TEST_P(Silence, IsWaitedForTwoSeconds) {
  FakeManager::Behaviour behaviour;
  behaviour.answers = GetParam() == std::string("the job");
  behaviour.result = "";
  FakeManager manager(behaviour);
  const auto begin = std::chrono::steady_clock::now();
  const auto done = start_on(manager.address());
  ASSERT_FALSE(done);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, SystemdBus::kLimit - std::chrono::milliseconds(100));
  EXPECT_THAT(done.error().text(), HasSubstr("2 s"));
}

// What came while its caller had other work to do for longer than it would wait is not late.
TEST(SystemdBus, AnAnswerThatWaitsForUs) {
  FakeManager manager({});
  asio::io_context io(1);
  const auto bus = *SystemdBus::open(io.get_executor(), manager.address());
  auto scope = bus->ask_for_scope({"sandy-test.scope", "A test", 4711, {}});
  ASSERT_TRUE(scope);
  for (int turn = 0; turn < 1'000 && manager.calls().size() < 2; ++turn) {
    bus->advance();
    ::usleep(10'000);
  }
  ASSERT_EQ(manager.calls().size(), 2) << "it was asked before anybody waited";
  std::this_thread::sleep_for(SystemdBus::kLimit + std::chrono::milliseconds(300));
  Result<void> done = fail("test", "it never returned");
  const auto run = [&]() -> asio::awaitable<void> {
    done = co_await bus->wait_for_scope(*scope);
    bus->close();
  };
  asio::co_spawn(io, run(), asio::detached);
  io.run_for(std::chrono::seconds(20));
  EXPECT_TRUE(done) << done.error().text();
}

// A start that was given up before it was waited for: its answer finds nobody, and the bus is as good for the next one.
TEST(SystemdBus, AScopeThatIsGivenUp) {
  FakeManager manager({});
  asio::io_context io(1);
  const auto bus = *SystemdBus::open(io.get_executor(), manager.address());
  ASSERT_TRUE(bus->ask_for_scope({"sandy-lost.scope", "A test", 4711, {}}));
  Result<void> done = fail("test", "it never returned");
  const auto run = [&]() -> asio::awaitable<void> {
    auto scope = bus->ask_for_scope({"sandy-test.scope", "A test", 4711, {}});
    done = co_await bus->wait_for_scope(*scope);
    bus->close();
  };
  asio::co_spawn(io, run(), asio::detached);
  io.run_for(std::chrono::seconds(20));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(manager.calls().size(), 3);
}

INSTANTIATE_TEST_SUITE_P(Of, Silence, testing::Values("the answer", "the job"));

TEST(SystemdBus, ABusThatGoesAway) {
  FakeManager::Behaviour behaviour;
  behaviour.drops = true;
  FakeManager manager(behaviour);
  const auto done = start_on(manager.address());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("bus"));
}

TEST(SystemdBus, NoBus) {
  for (const char* address : {"unix:path=/nonexistent/bus", "nonsense"}) {
    for (const bool is_bus : {true, false}) {
      const auto done = start_on({address, is_bus});
      ASSERT_FALSE(done) << address;
      EXPECT_THAT(done.error().text(), HasSubstr("hint:")) << address;
    }
  }
}

TEST(SystemdBus, OtherLimitsLater) {
  FakeManager manager({});
  asio::io_context io(1);
  const auto bus = *SystemdBus::open(io.get_executor(), manager.address());
  Result<void> done = fail("test", "it never returned");
  const auto run = [&]() -> asio::awaitable<void> {
    ScopeLimits limits;
    limits.memory = 1 << 20;
    done = co_await bus->set_limits("sandy-test.scope", limits);
    bus->close();
  };
  asio::co_spawn(io, run(), asio::detached);
  io.run_for(std::chrono::seconds(20));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(manager.calls(), ElementsAre("Subscribe", "SetUnitProperties"));
}

}  // namespace
}  // namespace sandy::cgroup
