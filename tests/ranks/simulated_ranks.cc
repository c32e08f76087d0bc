// Ranks on machines that SimGrid simulates: heddle's own sums and gathers, over simulated links,
// beside simulated computing. Prints an update's time for 8 to 64 ranks beside the closed form of
// `heddle analyze --ranks`, and fails where what is left beyond computing is more than 10 % apart.
// usage: heddle_simulated_ranks MODEL SECONDS [LINK [MICROSECONDS]]
//   SECONDS: of the computing of each rank
#include <sys/socket.h>
#include <simgrid/s4u.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/dist/rank_group.h"
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/model_sizes.h"
#include "heddle/inspect/scaling.h"

namespace heddle::testing {
namespace {

namespace sg4 = simgrid::s4u;

constexpr int64_t kScale =
    256;  // a value of the simulation stands for so many, so that 64 ranks fit into memory
constexpr int kUpdates = 3;
constexpr int64_t kMostRanks = 64;

// Bytes between this rank and its partners as messages of SimGrid, one for each send. Short ones,
// as heads of exchanges, leave at once; others when their receiver is there, as if sockets kept
// none.
class SimulatedWire final : public dist::Wire {
 public:
  SimulatedWire(int64_t rank, size_t steps) : steps_(steps) {
    for (size_t i = 0; i < steps; ++i) {
      const int64_t partner = rank ^ (int64_t{1} << i);
      for (const bool is_short : {false, true}) {
        const char* kind = is_short ? "short" : "long";
        Way& way = steps_[i].ways[is_short];
        way.out = sg4::Mailbox::by_name(fmt::format("{} to {}, {}", rank, partner, kind));
        way.in = sg4::Mailbox::by_name(fmt::format("{} to {}, {}", partner, rank, kind));
        if (is_short) way.in->set_receiver(sg4::Actor::self());
      }
    }
  }
  int64_t send_some(size_t step, std::span<const std::byte> bytes) override {
    auto* const message = new std::vector<std::byte>(bytes.begin(), bytes.end());
    const bool is_short = bytes.size() <= kShort;
    const auto size = static_cast<uint64_t>(std::ssize(bytes) * (is_short ? 1 : scale_));
    steps_[step].ways[is_short].out->put_init(message, size)->detach();
    return std::ssize(bytes);
  }
  int64_t receive_some(size_t step, std::span<std::byte> room) override {
    Partner& p = steps_[step];
    if (p.message == nullptr) {
      Way& way = expect(p, room.size() <= kShort);
      if (!way.coming->test()) return 0;
      way.coming = nullptr;
      p.message.reset(std::exchange(way.arrived, nullptr));
      p.read = 0;
    }
    const size_t count = std::min(room.size(), p.message->size() - p.read);
    std::memcpy(room.data(), p.message->data() + p.read, count);
    p.read += count;
    if (p.read == p.message->size()) p.message = nullptr;
    return static_cast<int64_t>(count);
  }
  bool wait(size_t step, bool, bool, int) override {
    Partner& p = steps_[step];
    expect(p, p.awaits_short).coming->wait();
    return false;
  }
  // What is sent from now on stands for so much.
  void set_scale(int64_t scale) { scale_ = scale; }

 private:
  static constexpr size_t kShort = 64;  // bytes
  struct Way {
    sg4::Mailbox* out = nullptr;
    sg4::Mailbox* in = nullptr;
    sg4::CommPtr coming = nullptr;
    std::vector<std::byte>* arrived = nullptr;  // by `coming`
  };
  struct Partner {
    std::array<Way, 2> ways = {};  // of long messages, of short ones
    bool awaits_short = true;
    std::unique_ptr<std::vector<std::byte>> message = nullptr;
    size_t read = 0;
  };
  // Who awaits a head is there for what follows it.
  static Way& expect(Partner& p, bool is_short) {
    p.awaits_short = is_short;
    for (Way& way : p.ways) {
      if (way.coming == nullptr) {
        way.coming = way.in->get_async<std::vector<std::byte>>(&way.arrived);
      }
    }
    return p.ways[is_short];
  }

  std::vector<Partner> steps_;
  int64_t scale_ = 1;
};

struct Work {
  double compute = 0;            // seconds of an update's forward and backward pass
  std::vector<int64_t> buckets;  // gradients of each, as they leave
};

// The updates of one rank, as train/ranks has them.
void train(const Work& work, dist::Meeting meeting, double& seconds) {
  const auto rank = static_cast<float>(meeting.rank);
  const auto ranks = static_cast<double>(meeting.members.size());
  auto owned =
      std::make_unique<SimulatedWire>(meeting.rank, std::bit_width(meeting.members.size()) - 1);
  SimulatedWire& wire = *owned;
  dist::RankGroup group(std::move(meeting), std::move(owned),
                        {.lost_seconds = 1e6, .step_seconds = 1e6});
  double all = 0;
  for (const int64_t values : work.buckets) all += static_cast<double>(values);
  const double begin = sg4::Engine::get_clock();
  for (int update = 0; update < kUpdates; ++update) {
    const double start = sg4::Engine::get_clock();
    const double forward = (1 - inspect::kBackwardShare) * work.compute;
    double made = 0;
    std::vector<std::vector<float>> sums;
    wire.set_scale(kScale);
    for (const int64_t values : work.buckets) {
      made += static_cast<double>(values);
      sg4::this_actor::sleep_until(start + forward + (work.compute - forward) * made / all);
      std::vector<float>& bucket = sums.emplace_back((values + kScale - 1) / kScale, rank);
      group.reduce_scatter(bucket);
      const dist::Slice own = dist::slice_of(std::ssize(bucket), group.rank(), group.ranks());
      for (int64_t i = own.begin; i < own.end; ++i) {
        check(bucket[static_cast<size_t>(i)] == ranks * (ranks - 1) / 2, ErrorKind::internal,
              "a sum is wrong");
      }
    }
    wire.set_scale(1);
    group.gather(std::string(48, '0'));                       // losses
    group.gather(std::string(8 * work.buckets.size(), '0'));  // squares of the norm
    wire.set_scale(kScale);
    for (std::vector<float>& bucket : sums) group.all_gather(bucket);
    wire.set_scale(1);
  }
  seconds = (sg4::Engine::get_clock() - begin) / kUpdates;
  group.close();
}

// Ranks that have met, in one process.
std::vector<dist::Meeting> meetings(int64_t ranks) {
  std::vector<dist::Member> members;
  for (int64_t r = 0; r < ranks; ++r) {
    members.push_back({.host = fmt::format("n{}", r), .endpoint = {}});
  }
  std::vector<dist::Meeting> all;
  for (int64_t r = 0; r < ranks; ++r) {
    all.push_back({.rank = r, .secret = "", .members = members, .lines = {}, .door = {{}, ""}});
    all.back().lines.resize(members.size());
  }
  for (size_t i = 1; i < all.size(); ++i) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
          ErrorKind::system, "socketpair");
    all[0].lines[i] = dist::Socket(ends[0]);
    all[i].lines[0] = dist::Socket(ends[1]);
  }
  return all;
}

// Machines n0 .. that one switch joins.
void make_machines(int64_t count, const inspect::RankLink& link) {
  sg4::NetZone* const zone = sg4::create_star_zone("machines");
  for (int64_t r = 0; r < count; ++r) {
    const std::string name = fmt::format("n{}", r);
    sg4::SplitDuplexLink* const wire = zone->create_split_duplex_link(name, link.bytes_per_second);
    wire->set_latency(link.latency / 2)->seal();
    zone->add_route(zone->create_host(name, 1e9)->get_netpoint(), nullptr, nullptr, nullptr,
                    {{wire, sg4::LinkInRoute::Direction::UP}}, true);
  }
  zone->seal();
}

// Seconds of an update.
double simulate(const Work& work, int64_t ranks) {
  std::vector<double> seconds(static_cast<size_t>(ranks));
  std::vector<dist::Meeting> met = meetings(ranks);
  for (size_t r = 0; r < met.size(); ++r) {
    sg4::Actor::create(fmt::format("rank {}", r), sg4::Host::by_name(fmt::format("n{}", r)),
                       [&, r] { train(work, std::move(met[r]), seconds[r]); });
  }
  sg4::Engine::get_instance()->run();
  return *std::max_element(seconds.begin(), seconds.end());
}

int run(int argc, char** argv) {
  check(argc >= 3, ErrorKind::usage, "usage: {} MODEL SECONDS [LINK [MICROSECONDS]]", argv[0]);
  const double compute = std::strtod(argv[2], nullptr);
  check(compute > 0, ErrorKind::usage, "'{}' are no seconds of computing", argv[2]);
  const auto config = inspect::find_size(argv[1], {});
  Work work{
      .compute = std::strtod(argv[2], nullptr),
      .buckets = inspect::analyze(*config, argv[1], {.batch = 1, .source = 16}).gradient_buckets};
  const std::string rate = argc > 3 ? argv[3] : "10GbE";
  const inspect::RankLink link{.bytes_per_second = inspect::link_rate(rate),
                               .latency = 1e-6 * (argc > 4 ? std::strtod(argv[4], nullptr) : 50)};
  fmt::print(
      "{}, {} s of computing on each rank, {} of {:g} us, simulated by SimGrid\n  "
      "{:>6}{:>14}{:>14}{:>10}{:>12}\n",
      argv[1], work.compute, rate, 1e6 * link.latency, "ranks", "simulated", "closed form", "apart",
      "efficiency");
  make_machines(kMostRanks, link);
  int passed = 0, failed = 0;
  for (int64_t ranks = 8; ranks <= kMostRanks; ranks *= 2) {
    const double simulated = simulate(work, ranks);
    const double predicted = inspect::ranked_updates(work.compute * static_cast<double>(ranks),
                                                     work.buckets, ranks, link)
                                 .back()
                                 .seconds();
    const double apart = std::abs((predicted - compute) / (simulated - compute) - 1);
    fmt::print("  {:>6}{:>12.3f} s{:>12.3f} s{:>8.1f} %{:>10.1f} %\n", ranks, simulated, predicted,
               100 * apart, 100 * work.compute / simulated);
    ++(apart <= 0.1 ? passed : failed);
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::testing

int main(int argc, char** argv) {
  // Links of a rate and a latency: the default's factors are those of short connections far away.
  std::vector<std::string> settings = {argv[0], "--cfg=network/model:CM02",
                                       "--log=root.thresh:error"};
  std::vector<char*> set;
  for (std::string& setting : settings) set.push_back(setting.data());
  auto count = static_cast<int>(set.size());
  set.push_back(nullptr);
  simgrid::s4u::Engine engine(&count, set.data());
  try {
    return heddle::testing::run(argc, argv);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
