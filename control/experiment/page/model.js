// What the charts show, read from the results file inside the page; needs no chart library.
"use strict";
var Model = (function () {
  var results = Page.results, digits = Page.digits;
  var details = (results.detail && results.detail.arms) || [];

  function sizeName(bytes) {  // sizes of messages are powers of two
    var names = ["B", "KiB", "MiB", "GiB"];
    var i = 0;
    while (bytes >= 1024 && i < names.length - 1) { bytes /= 1024; ++i; }
    return digits(bytes, 3) + " " + names[i];
  }

  function armsOf(scenario) {
    return results.arms.map(function (arm, index) {
      var found = details.filter(function (d) { return d.scenario === scenario && d.arm === arm; });
      return { arm: arm, index: index % 6, detail: found[0] };  // index: of its colour
    }).filter(function (a) { return a.detail; });
  }

  // Completion times as steps of a distribution, in microseconds.
  function completion(scenario) {
    return armsOf(scenario).filter(function (a) {
      return a.detail.fct_ns.length !== 0;
    }).map(function (a) {
      var n = a.detail.messages;
      return {
        arm: a.arm, index: a.index, messages: n, outstanding: a.detail.outstanding,
        points: a.detail.fct_ns.map(function (ns, i) {
          return { us: ns / 1000, share: a.detail.fct_messages[i] / n };
        }),
      };
    });
  }
  function quantile(points, q) {
    for (var i = 0; i < points.length; ++i) if (points[i].share >= q - 1e-12) return points[i].us;
    return points[points.length - 1].us;
  }

  function slowdown(scenario) {
    return armsOf(scenario).map(function (a) {
      return { arm: a.arm, index: a.index, bins: a.detail.slowdown_by_size };
    }).filter(function (a) { return a.bins.length !== 0; });
  }

  // Panels for Draw.course: a value per interval, at the interval's end. Signals that stayed 0
  // under every arm have none.
  function course(scenario) {
    var arms = armsOf(scenario).filter(function (a) { return a.detail.series; });
    function width(s, i) {
      return (Math.min((i + 1) * s.interval_ps, s.end_ps) - i * s.interval_ps) / 1e6;
    }
    function lines(name, scale) {
      return arms.map(function (a) {
        var s = a.detail.series;
        return {
          name: a.arm, index: a.index,
          points: s[name].map(function (v, i) {
            return { us: Math.min((i + 1) * s.interval_ps, s.end_ps) / 1e6,
                     value: scale(v, width(s, i)) };
          }),
        };
      });
    }
    function same(v) { return v; }
    function gbps(v, us) { return v * 8 / us / 1000; }
    var panels = [
      { title: "Queue", kind: "bytes", lines: lines("deepest_queue_bytes", same), thin: lines("queued_bytes", same) },
      { title: "Goodput, all hosts", kind: "Gb/s", lines: lines("delivered_bytes", gbps) },
      { title: "Retransmitted", kind: "Gb/s", lines: lines("retransmitted_bytes", gbps) },
      { title: "Paused links (mean number)", kind: "",
        lines: lines("paused_ps", function (v, us) { return v / 1e6 / us; }) },
      { title: "CNPs", kind: "per us", lines: lines("cnps", function (v, us) { return v / us; }) },
      { title: "ECN marks", kind: "per us",
        lines: lines("marked_packets", function (v, us) { return v / us; }) },
      { title: "Packets lost", kind: "per interval", lines: lines("dropped_packets", same) },
    ];
    return panels.map(function (panel) {
      panel.largest = Math.max.apply(null, panel.lines.concat(panel.thin || []).map(function (l) {
        return Math.max.apply(null, l.points.map(function (p) { return p.value; }));
      }));
      return panel;
    }).filter(function (panel) { return panel.largest > 0; });
  }

  // Pairs of one metric: arm against baseline, repetition by repetition.
  function pairs(scenario, arm, metric) {
    function value(of) {
      var byRepetition = {};
      results.runs.forEach(function (run) {
        if (run.scenario === scenario && run.arm === of && run.status === "ok" &&
            run.metrics[metric] !== null) {
          byRepetition[run.repetition] = { value: run.metrics[metric], seed: run.seed };
        }
      });
      return byRepetition;
    }
    var base = value(results.arms[0]);
    var treated = value(arm);
    return Object.keys(base).filter(function (r) { return treated[r]; }).map(function (r) {
      return { repetition: Number(r), seed: base[r].seed, baseline: base[r].value,
               arm: treated[r].value };
    });
  }

  // Mean of a metric over the runs of an arm that ended well; null where it applies to none.
  function mean(scenario, arm, metric) {
    var values = results.runs.filter(function (run) {
      return run.scenario === scenario && run.arm === arm && run.status === "ok" &&
          run.metrics[metric] !== null;
    }).map(function (run) { return run.metrics[metric]; });
    if (values.length === 0) return null;
    return values.reduce(function (a, b) { return a + b; }, 0) / values.length;
  }

  // A mean as the page's table states it.
  function cell(scenario, arm, metric) {
    var found = Array.prototype.filter.call(document.querySelectorAll("table.means tr"), function (row) {
      return row.getAttribute("data-scenario") === scenario && row.getAttribute("data-arm") === arm;
    }).map(function (row) { return row.querySelector('[data-metric="' + metric + '"]'); })
        .filter(Boolean);
    return found.length ? found[0].textContent : "-";
  }

  // The effects as the page's own tables state them.
  function rows(selector) {
    return Array.prototype.map.call(document.querySelectorAll(selector), function (row) {
      function number(name) {
        var t = row.getAttribute("data-" + name);
        return t === "null" ? NaN : Number(t);
      }
      function cell(name) {
        var found = row.querySelector("." + name);
        return found ? found.textContent : "";
      }
      var good = row.getAttribute("data-good");
      var ratio = row.getAttribute("data-scale") === "ratio";
      function factor(effect) { return good === "lower" ? 1 / (1 + effect) : 1 + effect; }
      var a = factor(number("low")), b = factor(number("high"));
      return {
        scenario: row.getAttribute("data-scenario"), arm: row.getAttribute("data-arm"),
        metric: row.getAttribute("data-metric"), label: row.getAttribute("data-label"),
        verdict: row.getAttribute("data-verdict"), good: good, ratio: ratio,
        summary: row.className === "summary",
        effect: number("effect"), low: number("low"), high: number("high"),
        factor: factor(number("effect")), from: Math.min(a, b), to: Math.max(a, b),
        effectText: cell("effect"), intervalText: cell("interval"),
      };
    });
  }

  return {
    results: results, digits: digits, unit: Page.unit, quantity: Page.quantity,
    sizeName: sizeName, completion: completion, quantile: quantile, slowdown: slowdown,
    course: course, pairs: pairs, mean: mean, cell: cell, rows: rows,
  };
})();
