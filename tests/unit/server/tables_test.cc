// SPDX-License-Identifier: Apache-2.0
// Routes, metrics, and the tables that connections share.
#include <doctest/doctest.h>

#include <thread>

#include "verifier/server/connection_tables.h"
#include "verifier/server/metrics.h"
#include "verifier/server/router.h"

namespace assay::server {
namespace {

TEST_CASE("an exact route wins over a prefix, a longer prefix over a shorter, and listeners are apart") {
  const auto none = [](const Request&, const Responder&) {};
  const Router router({{"GET", "/a/*", Listener::kNetwork, 1, none},
                       {"GET", "/a/b/*", Listener::kNetwork, 2, none},
                       {"GET", "/a/b/c", Listener::kNetwork, 3, none},
                       {"POST", "/p", Listener::kNetwork, 4, none},
                       {"GET", "/op", Listener::kOperator, 5, none}});
  const auto limit = [&](std::string_view method, std::string_view path,
                         Listener listener = Listener::kNetwork) -> std::size_t {
    const RouteMatch match = router.Find(method, path, listener);
    return match.route == nullptr ? 0 : match.route->body_limit;
  };
  CHECK(limit("GET", "/a/x") == 1);
  CHECK(limit("GET", "/a/b/x") == 2);
  CHECK(limit("GET", "/a/b/c") == 3);
  CHECK(limit("GET", "/a/b/c/d") == 2);
  CHECK(limit("GET", "/a/") == 0);
  CHECK(limit("GET", "/a") == 0);
  CHECK(limit("GET", "/ab") == 0);
  CHECK(limit("GET", "/op") == 0);
  CHECK(limit("GET", "/op", Listener::kOperator) == 5);
  CHECK(limit("get", "/a/x") == 0);
  CHECK(router.Find("GET", "/p", Listener::kNetwork).other_method);
  CHECK_FALSE(router.Find("GET", "/q", Listener::kNetwork).other_method);
  CHECK_FALSE(router.Find("POST", "/op", Listener::kNetwork).other_method);
}

TEST_CASE("errors quote what they hold, as JSON and as CBOR") {
  const Response json = ErrorResponse(400, "bad", "a \"quoted\"\n line", "", false);
  CHECK(json.status == 400);
  CHECK(AsText(json.body) == "{\"code\":\"bad\",\"detail\":\"a \\\"quoted\\\"\\u000a line\",\"fix\":\"\"}");
  CHECK(ErrorResponse(400, "bad", "d", "f", true).content_type == "application/cbor");
}

TEST_CASE("addresses count by IPv4 address and by IPv6 /64, mapped ones as IPv4") {
  CHECK(LimitKey("192.0.2.1") == LimitKey("::ffff:192.0.2.1"));
  CHECK(LimitKey("192.0.2.1") != LimitKey("192.0.2.2"));
  CHECK(LimitKey("2001:db8::1") == LimitKey("2001:db8::ffff:1"));
  CHECK(LimitKey("2001:db8::1") != LimitKey("2001:db8:0:1::1"));
  CHECK(PlainAddress("::ffff:192.0.2.1") == "192.0.2.1");
  CHECK(PlainAddress("2001:db8::1") == "2001:db8::1");
  CHECK(PlainAddress("local") == "local");
}

TEST_CASE("balancers are compared as numbers, by network") {
  const BalancerList list = BalancerList::Parse({"10.0.0.7", "10.1.2.0/23", "FD00:0:0:0::/64"}).value();
  CHECK(list.Holds("10.0.0.7"));
  CHECK(list.Holds("::ffff:10.0.0.7"));
  CHECK_FALSE(list.Holds("10.0.0.8"));
  CHECK(list.Holds("10.1.3.255"));
  CHECK_FALSE(list.Holds("10.1.4.0"));
  CHECK(list.Holds("fd00::5"));
  CHECK_FALSE(list.Holds("fd00:0:0:1::5"));
  CHECK_FALSE(list.Holds("nonsense"));
  CHECK_FALSE(BalancerList{}.Holds("10.0.0.7"));
  for (const std::string bad :
       {"", "lb", "10.0.0.0/33", "10.0.0.0/0", "::/129", "10.0.0.0/x", "10.0.0.0/8/8", "10.0.0.0/-1"})
    CHECK_FALSE(BalancerList::Parse({bad}).ok());
}

TEST_CASE("a source table keeps both limits and forgets who holds nothing") {
  SourceTable table;
  const SourceTable::Limits limits{3, 2};
  CHECK(table.Enter("a", limits));
  CHECK(table.Enter("a", limits));
  CHECK_FALSE(table.Enter("a", limits));
  CHECK(table.Enter("b", limits));
  CHECK_FALSE(table.Enter("c", limits));
  table.Leave("a");
  CHECK(table.Enter("c", limits));
  table.Leave("nobody");
  CHECK_FALSE(table.Enter("d", limits));
  CHECK_FALSE(SourceTable().Enter("a", {1, 0}));
}

TEST_CASE("handshakes are dropped oldest first") {
  HandshakeTable table;
  std::vector<int> dropped;
  for (int i = 0; i < 5; ++i) table.Enter([&dropped, i] { dropped.push_back(i); });
  table.Leave(2);
  CHECK(table.Trim(2) == 2);
  CHECK(dropped == std::vector<int>{0, 2});
  CHECK(table.Trim(2) == 0);
}

TEST_CASE("metrics are printed in the text format of Prometheus") {
  Counter good, bad;
  Gauge gauge;
  Histogram seconds({0.5, 1});
  good.Add(3);
  gauge.Add(-2);
  for (const double value : {0.25, 0.5, 0.75, 7.0}) seconds.Observe(value);
  MetricsPage page;
  page.AddCounter("a_total", "Of a", "{kind=\"good\"}", [&] { return static_cast<double>(good.value()); });
  page.AddGauge("g", "Of g", "", [&] { return static_cast<double>(gauge.value()); });
  page.AddCounter("a_total", "Of a", "{kind=\"bad\"}", [&] { return static_cast<double>(bad.value()); });
  page.AddHistogram("s", "Of s", "{r=\"x\"}", seconds);
  CHECK(page.Text() ==
        "# HELP a_total Of a\n# TYPE a_total counter\na_total{kind=\"good\"} 3\na_total{kind=\"bad\"} 0\n"
        "# HELP g Of g\n# TYPE g gauge\ng -2\n"
        "# HELP s Of s\n# TYPE s histogram\ns_bucket{r=\"x\",le=\"0.5\"} 2\ns_bucket{r=\"x\",le=\"1\"} "
        "3\ns_bucket{r=\"x\",le=\"+Inf\"} 4\n"
        "s_sum{r=\"x\"} 8.5\ns_count{r=\"x\"} 4\n");
}

TEST_CASE("metrics lose nothing when threads add at once") {
  Counter counter;
  Histogram histogram({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        counter.Add();
        histogram.Observe(0.5);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(counter.value() == 40'000);
  CHECK(histogram.in_bucket(0) == 40'000);
  CHECK(histogram.sum() == 20'000.0);
}

}  // namespace
}  // namespace assay::server
