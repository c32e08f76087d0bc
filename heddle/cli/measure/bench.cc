// heddle bench: how fast a case runs here, and how far that is from the machine's limit.
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/base/rounded.h"
#include "heddle/bench/case.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/kernels/cpu/matrix_unit.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string name, precision = "f32";
  int threads = 0;
  int64_t batch = 0;
  double seconds = 8;
  bool products = false, json = false;
};

void list_cases(bool as_json) {
  Json all = Json::array();
  for (const bench::BenchCase& c : bench::cases()) {
    if (!as_json) {
      const std::string dtypes = fmt::format("{}", fmt::join(c.dtypes, ","));
      fmt::print("{:22} {:18} {:14} {}\n", c.name, c.unit, dtypes, c.about);
      continue;
    }
    all.push_back(Json::object(
        {{"case", c.name}, {"unit", c.unit}, {"dtypes", c.dtypes}, {"about", c.about}}));
  }
  if (as_json) fmt::print("{}\n", all.dump());
}

// What multiplies: f32 has no unit of its own.
std::string unit_of(const bench::BenchCase& c, const Flags& flags) {
  const Precision precision = bench::options_of_run(c, flags.precision).precision;
  const bool is_plain = precision.compute == DType::f32 && !precision.int8;
  return std::string(matrix_unit_name(is_plain ? MatrixUnit::vectors : matrix_unit()));
}

std::string as_json(const bench::BenchCase& c, const Flags& flags, const bench::BenchResult& r) {
  Json line = Json::object({{"case", c.name},
                            {"dtype", flags.precision},
                            {"threads", num_threads()},
                            {"matrix_unit", unit_of(c, flags)},
                            {"batch", r.batch},
                            {"value", rounded(r.value, 4)},
                            {"unit", c.unit},
                            {"step_ms", rounded(r.step_ms, 4)},
                            {"repetitions", r.repetitions},
                            {"peak_bytes", r.peak_bytes},
                            {"model", r.model},
                            {"parameters", r.parameters}});
  if (r.peak > 0) {
    line["peak"] = rounded(r.peak, 4);
    line["peak_by"] = r.peak_by;
    line["share_of_peak"] = rounded(r.share_of_peak, 4);
  }
  if (r.products > 0) {
    line["products"] = rounded(r.products, 4);
    line["share_of_products"] = rounded(r.share_of_products, 4);
  }
  return line.dump();
}

void print_text(const bench::BenchCase& c, const Flags& flags, const bench::BenchResult& r) {
  fmt::print("{}  {} by {}, {}, batch {}; {}, {:.1f} million parameters\n", c.name, flags.precision,
             matrix_unit_name(matrix_unit()), counted(num_threads(), "thread"), r.batch, r.model,
             static_cast<double>(r.parameters) / 1e6);
  fmt::print("  {:12} {:12.1f} {}  ({:.3f} ms, the median of {})\n", "value", r.value, c.unit,
             r.step_ms, r.repetitions);
  const auto print_limit = [&](const char* name, double value, const char* what, double share) {
    if (value == 0) return;
    fmt::print("  {:12} {:12.1f} {}  ({}); {:.1f} % of it reached\n", name, value, c.unit, what,
               100 * share);
  };
  print_limit("peak", r.peak,
              r.peak_by == "reads" ? "plain reads of the weights alone"
                                   : "all products, from registers to registers",
              r.share_of_peak);
  print_limit("products", r.products, "products of linear layers alone, by the driver",
              r.share_of_products);
  fmt::print("  {:12} {:12.1f} MiB\n", "peak memory",
             static_cast<double>(r.peak_bytes) / (1 << 20));
}

// Operands as they lie in memory: which of them is read by columns.
std::string operands_of(const bench::MatrixProduct& p) {
  return fmt::format("a{} b{}", p.transpose_a ? "ᵀ" : "", p.transpose_b ? "ᵀ" : "");
}

void print_products(const bench::BenchCase& c, const Flags& flags,
                    const bench::ProductTimings& timings) {
  if (flags.json) {
    Json products = Json::array();
    for (const auto& [p, seconds] : timings.rows) {
      products.push_back(Json::object({{"m", p.m},
                                       {"n", p.n},
                                       {"k", p.k},
                                       {"transpose_a", p.transpose_a},
                                       {"transpose_b", p.transpose_b},
                                       {"in", p.int8 ? "int8" : dtype_name(p.in)},
                                       {"out", dtype_name(p.out)},
                                       {"constant_b", p.is_constant},
                                       {"count", p.count},
                                       {"seconds", seconds}}));
    }
    Json line = Json::object({{"case", c.name},
                              {"dtype", flags.precision},
                              {"threads", num_threads()},
                              {"matrix_unit", unit_of(c, flags)},
                              {"matrix_products", products}});
    if (timings.peak > 0) line["peak_flops"] = rounded(timings.peak, 0);
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print(
      "{}  {} by {}, {}; c [m, n] = a b, inner size k; G/s: 10⁹ multiplications and "
      "additions a second{}\n",
      c.name, flags.precision, unit_of(c, flags), counted(num_threads(), "thread"),
      timings.peak > 0 ? fmt::format(", of {:.1f} from registers to registers", timings.peak / 1e9)
                       : "");
  fmt::print("{:>8} {:>8} {:>8}  {:7} {:>7} {:>10} {:>9} {:>8}\n", "m", "n", "k", "", "times", "ms",
             "G/s", "of peak");
  for (const bench::ProductTimings::Row& row : timings.rows) {
    const bench::MatrixProduct& p = row.product;
    fmt::print("{:8} {:8} {:8}  {:7} {:7} {:10.3f} {:9.1f} {:>8}\n", p.m, p.n, p.k, operands_of(p),
               p.count, 1e3 * row.seconds, row.rate() / 1e9,
               timings.peak > 0 ? fmt::format("{:.1f} %", 100 * row.rate() / timings.peak) : "");
  }
}

void run(const Flags& flags) {
  apply_threads(flags.threads);
  if (flags.name == "list") return list_cases(flags.json);
  const bench::BenchCase& c = bench::find_case(flags.name);
  bench::BenchOptions options = bench::options_of_run(c, flags.precision);
  check(flags.batch >= 0 && flags.batch <= 1 << 20, ErrorKind::usage,
        "--batch is {}; it must be 1 to {}, or 0", flags.batch, 1 << 20);
  check(flags.seconds >= 0 && flags.seconds <= 86400, ErrorKind::usage,
        "--seconds is {}; it must be 0 to 86400", flags.seconds);
  options.batch = flags.batch, options.seconds = flags.seconds;
  if (flags.products) return print_products(c, flags, bench::time_products(c, options));
  const bench::BenchResult r = bench::run_case(c, options);
  if (flags.json) {
    fmt::print("{}\n", as_json(c, flags, r));
  } else {
    print_text(c, flags, r);
  }
}

}  // namespace

void add_bench(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "bench",
      "Time a case of training or inference, and say how far it is from the machine's limit", run);
  command.add_option("case", flags.name, "a case, or list: names them all").required();
  command.add_setting("--precision", flags.precision, "f32, bf16, int8 or int4");
  add_threads_flag(command, flags.threads);
  command.add_setting("--batch", flags.batch,
                      "sentences or sequences at a time; 0: the case's own");
  const Option seconds = command.add_setting(
      "--seconds", flags.seconds,
      "how long to repeat, after two repetitions of warm-up; three at least are timed");
  command
      .add_flag("--products", flags.products,
                "time each of its matrix products by itself instead (of attention's cases: what "
                "its blocks would be as such)")
      .excludes(seconds);
  command.add_flag("--json", flags.json, "one line of JSON");
}

}  // namespace heddle::cli
