// The recorder of --profile: what is summed under which name, and its tables and trace.
#include "heddle/base/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "heddle/base/json/json.h"

namespace heddle {
namespace {

void call(const char* kernel, Work work = {}) { const ProfiledCall timed(kernel, work); }

// "op/kernel/layer/pass calls" of each row, in the order in which they first came.
std::vector<std::string> rows_of(const Profile& p) {
  std::vector<std::string> rows;
  for (const Profile::Row& r : p.rows) {
    rows.push_back(fmt::format("{}/{}/{}/{} {}", r.op, r.kernel, r.layer, static_cast<int>(r.pass),
                               r.totals.calls));
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(Profile, op_names_the_calls_since_the_last_one) {
  start_profile();
  enter_profiled_layer("fc1");
  call("gemm");
  call("sum_columns");
  name_profiled_op("linear");
  call("activation");
  name_profiled_op("activation");
  call("gemm");
  name_profiled_op("linear");
  leave_profiled_layer();
  const auto p = stop_profile();
  EXPECT_EQ(rows_of(*p), (Rows{"linear/gemm/fc1/1 2", "linear/sum_columns/fc1/1 1",
                               "activation/activation/fc1/1 1"}));
}

TEST(Profile, op_of_many_calls_names_them_all) {
  start_profile(0);
  enter_profiled_layer("convolution");
  for (int i = 0; i < 10'000; ++i) call("gemm");
  name_profiled_op("winograd_convolution");
  leave_profiled_layer();
  const auto p = stop_profile();
  EXPECT_EQ(rows_of(*p), Rows{"winograd_convolution/gemm/convolution/1 10000"});
}

TEST(Profile, call_that_no_op_names_before_its_layer_ends_goes_under_its_kernel) {
  start_profile();
  enter_profiled_layer("attention");
  call("attention");
  enter_profiled_layer("projection");
  call("gemm");
  name_profiled_op("linear");
  leave_profiled_layer();
  call("convert");
  leave_profiled_layer();
  call("adam");
  const auto p = stop_profile();
  EXPECT_EQ(rows_of(*p), (Rows{"attention/attention/attention/1 1", "linear/gemm/projection/1 1",
                               "convert/convert/attention/1 1", "adam/adam/(outside phases)/0 1"}));
}

TEST(Profile, backward_step_names_op_and_layer_of_its_calls_at_once) {
  start_profile();
  enter_profiled_layer("fc2");
  const uint32_t layer = profiled_layer();
  leave_profiled_layer();
  {
    const ProfilePhase phase("backward");
    const ProfiledStep step("linear", layer);
    call("gemm");
    {
      const ProfiledStep inner("sum", 0);
      call("add");
    }
    name_profiled_op("not this one");
    call("gemm");
  }
  const auto p = stop_profile();
  EXPECT_EQ(rows_of(*p), (Rows{"linear/gemm/fc2/2 2", "sum/add/(backward)/2 1"}));
}

TEST(Profile, call_inside_a_call_is_part_of_it) {
  start_profile();
  {
    const ProfiledCall outer("best_tokens", {.bytes = 7});
    call("cross_entropy", {.bytes = 100});
  }
  const auto p = stop_profile();
  EXPECT_EQ(rows_of(*p), Rows{"best_tokens/best_tokens/(outside phases)/0 1"});
  EXPECT_EQ(p->rows[0].totals.work.bytes, 7);
}

TEST(Profile, work_is_summed_by_row_and_by_phase) {
  start_profile();
  {
    const ProfilePhase outer("update");
    call("gemm", {.bytes = 10, .flops = 100});
    const ProfilePhase inner("forward");
    call("gemm", {.bytes = 20, .flops = 200});
  }
  const auto p = stop_profile();
  ASSERT_EQ(p->rows.size(), 2u);  // in two phases, as there is no layer
  EXPECT_EQ(p->rows[1].totals.work.bytes, 20);
  ASSERT_EQ(p->phases.size(), 2u);
  EXPECT_EQ(p->phases[0].name, "update");
  EXPECT_EQ(p->phases[0].totals.work.flops, 300);
  EXPECT_EQ(p->phases[1].name, "forward");
  EXPECT_EQ(p->phases[1].totals.work.flops, 200);
}

TEST(Profile, times_of_calls_and_own_times_of_phases_add_up_to_the_whole) {
  const auto work = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  start_profile();
  {
    const ProfilePhase outer("outer");
    work();
    for (int i = 0; i < 2; ++i) {
      const ProfilePhase inner("inner");
      const ProfiledCall timed("kernel", {});
      work();
    }
  }
  call("kernel");
  const auto p = stop_profile();
  int64_t sum = p->time_outside_phases;
  for (const auto& row : p->rows) sum += row.totals.time;
  for (const auto& phase : p->phases) {
    EXPECT_GE(phase.own_time, 0) << phase.name;
    sum += phase.own_time;
  }
  EXPECT_EQ(sum, p->time);
  const Profile::Phase &outer = p->phases[0], &inner = p->phases[1];
  EXPECT_EQ(inner.totals.calls, 2);
  EXPECT_GE(inner.totals.time, 4'000'000);
  EXPECT_GE(outer.own_time, 2'000'000);
  EXPECT_GE(outer.totals.time, outer.own_time + inner.totals.time);
}

TEST(Profile, events_beyond_the_limit_are_counted_and_still_summed) {
  start_profile(3);
  for (int i = 0; i < 1000; ++i) call("add");
  const auto p = stop_profile();
  EXPECT_EQ(p->events.size(), 3u);
  EXPECT_EQ(p->events_left_out, 997);
  EXPECT_EQ(p->rows[0].totals.calls, 1000);
}

TEST(Profile, other_threads_are_not_recorded) {
  start_profile();
  std::thread([] {
    EXPECT_FALSE(is_profiling());
    call("add");
  }).join();
  EXPECT_TRUE(is_profiling());
  EXPECT_TRUE(stop_profile()->rows.empty());
  EXPECT_FALSE(is_profiling());
}

TEST(Profile, another_thread_may_stop_it_inside_phases_and_layers) {
  start_profile();
  std::optional<Profile> p;
  {
    const ProfilePhase phase("update");
    enter_profiled_layer("fc1");
    call("gemm");
    std::thread([&] { p = stop_profile(); }).join();
    call("gemm");
    name_profiled_op("linear");
    leave_profiled_layer();
  }
  EXPECT_EQ(rows_of(*p), Rows{"gemm/gemm/fc1/1 1"});
  EXPECT_EQ(p->phases[0].name, "update");
  EXPECT_FALSE(stop_profile().has_value());
}

TEST(Profile, nothing_is_recorded_without_a_start) {
  call("gemm");
  const ProfilePhase phase("update");
  EXPECT_FALSE(stop_profile().has_value());
}

// 2 s: linear forward 0.5 s and backward 1 s in 25 layers, 0.5 s outside kernels.
Profile made_up() {
  Profile p;
  p.time = 2'000'000'000;
  p.time_outside_phases = 100'000'000;
  for (int i = 0; i < 25; ++i) {
    const std::string layer = fmt::format("layer.{}", i);
    p.rows.push_back({"linear",
                      "gemm",
                      layer,
                      ProfilePass::forward,
                      {.calls = 40, .time = 20'000'000, .work = {200'000'000, 4e9}}});
    p.rows.push_back({"linear",
                      "gemm",
                      layer,
                      ProfilePass::backward,
                      {.calls = 80, .time = 40'000'000, .work = {400'000'000, 8e9}}});
  }
  p.phases.push_back({"update",
                      {.calls = 10, .time = 1'900'000'000, .work = {15'000'000'000, 3e11}},
                      400'000'000});
  return p;
}

TEST(ProfileTables, rates_and_shares_are_those_of_the_sums) {
  const std::string tables = profile_tables(made_up());
  const auto holds = [&](const std::string& line) {
    EXPECT_NE(tables.find(line + "\n"), std::string::npos) << line << " in\n" << tables;
  };
  holds(
      "profile: 2.000 s, of which 1.500 s (75.0 %) in 3,000 kernel calls and 0.500 s (25.0 %) "
      "outside kernels");
  holds("op               kernel  calls      ms   share      GB  GB/s  GFLOP/s");
  holds("linear backward  gemm    2,000  1000.0  50.0 %  10.000  10.0    200.0");
  holds("linear           gemm    1,000   500.0  25.0 %   5.000  10.0    200.0");
  holds("layer     calls  backward ms     ms   share     GB  GB/s  GFLOP/s");
  holds("layer.0     120         40.0   60.0   3.0 %  0.600  10.0    200.0");
  holds("5 more      600        200.0  300.0  15.0 %  3.000  10.0    200.0");
  holds("update             10  1900.0  95.0 %  15.000   7.9    157.9   400.0");
}

TEST(ProfileTrace, is_json_with_every_field_whatever_the_names_hold) {
  start_profile();
  {
    const ProfilePhase phase("load \"model\"\n\\");
    enter_profiled_layer("caf\xE9 \"1\"");
    call("gemm", {.bytes = 12, .flops = 3e9});
    leave_profiled_layer();
  }
  const auto p = stop_profile();
  std::string text;
  write_trace(*p, [&](std::string_view part) { text += part; });
  const Json trace = Json::parse(text);
  const auto& events = trace.at("traceEvents").as_array();
  ASSERT_EQ(events.size(), 2u);
  for (const Json& e : events) {
    EXPECT_EQ(e.get_string("ph"), "X");
    EXPECT_GE(e.get_double("ts"), 0);
    EXPECT_GE(e.get_double("dur"), 0);
    EXPECT_TRUE(e.contains("pid") && e.contains("tid"));
  }
  EXPECT_EQ(events[0].get_string("name"), "gemm");
  EXPECT_EQ(events[0].get_string("cat"), "forward");
  const Json& args = events[0].at("args");
  EXPECT_EQ(args.get_string("layer"), "caf\xEF\xBF\xBD \"1\"");
  EXPECT_EQ(args.get_int("bytes"), 12);
  EXPECT_EQ(args.get_double("flops"), 3e9);
  EXPECT_EQ(events[1].get_string("name"), "load \"model\"\n\\");
  EXPECT_EQ(events[1].get_string("cat"), "phase");
  EXPECT_LE(events[1].get_double("ts"), events[0].get_double("ts"));
}

TEST(ProfileTrace, empty_one_is_json_too) {
  std::string text;
  write_trace({}, [&](std::string_view part) { text += part; });
  EXPECT_EQ(Json::parse(text).at("traceEvents").size(), 0u);
}

}  // namespace
}  // namespace heddle
