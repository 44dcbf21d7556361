// The charts but for the one over time. Each gives what it shows as CSV, as a small table and as a
// sentence (no library needed), and draws it.
"use strict";
var Charts = (function () {
  var M = Model;

  function scenarioOf(figure) {
    return M.results.scenarios[Number(figure.getAttribute("data-index"))];
  }
  function verdictName(verdict) {
    return verdict === "better" || verdict === "worse" ? verdict : "neutral";
  }

  // --- dot and whisker --------------------------------------------------------------------------

  function forest(select) {
    function shown(figure) {
      return select(figure).filter(function (r) {
        return r.ratio && r.good !== "neither" && isFinite(r.factor) && r.factor > 0;
      });
    }
    return {
      data: function (figure) {
        var rows = shown(figure);
        return {
          csv: [["scenario", "arm", "metric", "effect", "low", "high", "verdict"]].concat(
              rows.map(function (r) {
                return [r.scenario, r.arm, r.metric, r.effect, r.low, r.high, r.verdict];
              })),
          label: "Dot and whisker chart. " + rows.map(function (r) {
            return (select.long ? r.scenario + ", " : "") + r.label + ", " + r.arm + ": " +
                r.effectText + " " + r.intervalText + ", " + r.verdict;
          }).join(". "),
          empty: rows.length === 0 ? "No metric of this scenario is compared by ratio." : "",
        };
      },
      draw: function (box, data, figure) {
        var rows = shown(figure);
        var several = M.results.arms.length > 2;
        function name(r) {
          return (select.long ? r.scenario + ": " : "") + (r.summary ? "" : r.label) +
              (several ? " (" + r.arm + ")" : "");
        }
        function clean(r) { return name(r).replace(/: $/, ""); }
        var longest = d3.max(rows, function (r) { return clean(r).length; });
        var width = select.long ? 1080 : 540;
        var left = Math.min(longest * 7 + 14, width * 0.5), right = width - 190;
        var top = 34, step = 24, height = top + rows.length * step + 44;
        var from = d3.min(rows, function (r) { return isNaN(r.from) ? r.factor : r.from; });
        var to = d3.max(rows, function (r) { return isNaN(r.to) ? r.factor : r.to; });
        from = Math.min(from, 1 / 1.1) / 1.06;
        to = Math.max(to, 1.1) * 1.06;
        var svg = Draw.canvas(box, width, height, data.label);
        var x = Draw.scale(true, from, to, [left, right]);
        var ticks = factorTicks(from, to);
        Draw.axes(svg, x, d3.scale.linear().domain([0, 1]).range([height - 44, top - 8]),
            { xTicks: ticks, yTicks: [], xFormat: factorName, xTitle: "improvement factor" });
        svg.append("line").attr("class", "one").attr("x1", x(1)).attr("x2", x(1))
            .attr("y1", top - 8).attr("y2", height - 44);
        Draw.text(svg, x(1) - 8, 14, "\u25c2 worse", "hint", "end");
        Draw.text(svg, x(1) + 8, 14, "better \u25b8", "hint");
        rows.forEach(function (r, i) {
          var y = top + i * step + step / 2;
          var g = svg.append("g").attr("class", "mark " + verdictName(r.verdict));
          g.append("title").text(clean(r) + ": " + r.effectText + " " + r.intervalText + ", " +
              r.verdict);
          Draw.text(g, left - 8, y + 4, clean(r), r.summary ? "label summary" : "label", "end");
          if (!isNaN(r.from)) {
            g.append("path").attr("class", "whisker").attr("d", "M" + x(r.from) + "," + y + "H" +
                x(r.to) + "M" + x(r.from) + "," + (y - 4) + "v8M" + x(r.to) + "," + (y - 4) + "v8");
          }
          if (r.summary) {
            g.append("path").attr("class", "dot")
                .attr("d", "M" + x(r.factor) + "," + (y - 7) + "l7,7l-7,7l-7,-7z");
          } else {
            g.append("circle").attr("class", "dot").attr("cx", x(r.factor)).attr("cy", y)
                .attr("r", 5);
          }
          Draw.text(g, right + 14, y + 4, r.effectText, "value strong");
          Draw.text(g, width - 2, y + 4, r.intervalText, "value", "end");
        });
      },
    };
  }
  function factorTicks(from, to) {
    var wide = Math.log(to / from) / Math.LN10;
    var steps = wide > 2.5 ? [1] : wide > 0.7 ? [1, 2, 5] : [1, 1.1, 1.2, 1.3, 1.5, 2, 3];
    var values = [];
    for (var e = 0; e < 9; ++e) {
      steps.forEach(function (s) {
        [s * Math.pow(10, e), 1 / (s * Math.pow(10, e))].forEach(function (v) {
          if (v >= from && v <= to && values.indexOf(v) < 0) values.push(v);
        });
      });
    }
    return values;
  }
  function factorName(v) {
    return v >= 1 ? "\u00d7" + M.digits(v, 3) : "\u00f7" + M.digits(1 / v, 3);
  }

  var overviewRows = function () { return M.rows("table.overview tr[data-metric]"); };
  overviewRows.long = true;
  var scenarioRows = function (figure) {
    var own = scenarioOf(figure);
    return M.rows("table.effects:not(.all) tr[data-metric]").filter(function (r) {
      return r.scenario === own;
    });
  };

  // --- every repetition -------------------------------------------------------------------------

  function primaryRows(figure) {
    var own = scenarioOf(figure);
    return M.rows("table.overview tr.primary").filter(function (r) { return r.scenario === own; })
        .map(function (r) {
          r.points = M.pairs(own, r.arm, r.metric).map(function (p) {
            p.change = r.ratio ? p.arm / p.baseline - 1 : p.arm - p.baseline;
            return p;
          });
          r.index = M.results.arms.indexOf(r.arm) % 6;
          return r;
        }).filter(function (r) { return r.points.length !== 0; });
  }
  var pairs = {
    data: function (figure) {
      var csv = [["arm", "metric", "repetition", "seed", "baseline", "value", "effect"]];
      primaryRows(figure).forEach(function (r) {
        r.points.forEach(function (p) {
          csv.push([r.arm, r.metric, p.repetition, p.seed, p.baseline, p.arm, p.change]);
        });
      });
      return {
        csv: csv,
        label: "Dots, one per repetition. " + primaryRows(figure).map(function (r) {
          var n = r.points.filter(function (p) { return p.change > 0; }).length;
          return r.label + ", " + r.arm + ": above " + M.results.arms[0] + " in " + n + " of " +
              r.points.length + " repetitions";
        }).join(". "),
        empty: csv.length === 1 ? "No pair of runs has finished." : "",
      };
    },
    draw: function (box, data, figure) {
      var rows = primaryRows(figure);
      var width = 540, left = 60, right = width - 14, top = 44, bottom = 250;
      var svg = Draw.canvas(box, width, 300, data.label);
      var percent = rows[0].ratio;
      var all = [0];
      rows.forEach(function (r) {
        r.points.forEach(function (p) { all.push(p.change); });
        if (!isNaN(r.low)) all.push(r.low, r.high);
      });
      var from = d3.min(all), to = d3.max(all), pad = (to - from || 1) * 0.08;
      var n = d3.max(rows, function (r) { return d3.max(r.points, function (p) { return p.repetition; }); });
      var x = Draw.scale(false, 0.5, n + 1.5, [left, right]);
      var y = Draw.scale(false, from - pad, to + pad, [bottom, top]);
      Draw.axes(svg, x, y, {
        xTicks: d3.range(1, n + 2, Math.ceil((n + 1) / 12)), xFormat: String,
        yFormat: function (v) { return percent ? (v > 0 ? "+" : "") + M.digits(v * 100, 3) + " %" : M.digits(v, 3); },
        xTitle: "repetition",
        title: rows[0].label + ": arm " + (percent ? "over" : "minus") + " baseline",
      });
      rows.forEach(function (r) {
        var g = svg.append("g").attr("class", "arm-" + r.index);
        if (!isNaN(r.low)) {
          g.append("rect").attr("class", "band").attr("x", left).attr("width", right - left)
              .attr("y", y(r.high)).attr("height", Math.max(1, y(r.low) - y(r.high)));
        }
        g.append("line").attr("class", "line").attr("x1", left).attr("x2", right)
            .attr("y1", y(r.effect)).attr("y2", y(r.effect));
        r.points.forEach(function (p) {
          g.append("circle").attr("class", "point").attr("r", 4).attr("cx", x(p.repetition + 1))
              .attr("cy", y(p.change)).append("title")
              .text("repetition " + (p.repetition + 1) + ", seed " + p.seed);
        });
      });
      svg.append("line").attr("class", "one").attr("x1", left).attr("x2", right)
          .attr("y1", y(0)).attr("y2", y(0));
      Draw.legend(svg, left, 14, rows.map(function (r) {
        return { name: "arm-" + r.index, text: r.arm };
      }));
    },
  };

  // --- completion times -------------------------------------------------------------------------

  var fct = {
    data: function (figure) {
      var arms = M.completion(scenarioOf(figure));
      var csv = [["arm", "fct_us", "share_completed"]];
      arms.forEach(function (a) {
        a.points.forEach(function (p) { csv.push([a.arm, p.us, p.share]); });
      });
      var shares = [0.5, 0.9, 0.99, 0.999];
      var table = [["arm", "messages", "p50", "p90", "p99", "p99.9", "max"]].concat(
          arms.map(function (a) {
            return [a.arm, String(a.messages)].concat(shares.concat([1]).map(function (q) {
              return M.quantity(M.quantile(a.points, q), "us", 4);
            }));
          }));
      return {
        csv: csv, table: table,
        label: "Distribution of message completion times. " + table.slice(1).map(function (r) {
          return r[0] + ": median " + r[2] + ", p99 " + r[4] + ", longest " + r[6];
        }).join(". "),
      };
    },
    draw: function (box, data, figure) {
      var arms = M.completion(scenarioOf(figure));
      var width = 540, svg = Draw.canvas(box, width, 300, data.label);
      var least = d3.min(arms, function (a) { return a.points[0].us; });
      var most = d3.max(arms, function (a) { return a.points[a.points.length - 1].us; });
      var log = most / least > 3;
      var u = M.unit("us", log ? Math.sqrt(least * most) : most);
      var pad = log ? Math.pow(most / least, 0.03) : 1 + 0.04 * (most - least || most) / most;
      var domain = [Math.max(least / pad, 1e-3) / u.by, most * pad / u.by];
      var messages = d3.max(arms, function (a) { return a.messages; });
      var rare = Math.pow(10, -Math.max(2, Math.ceil(Math.log(messages) / Math.LN10)));
      [0, 1].forEach(function (tail) {
        var left = tail ? 326 : 44, right = tail ? width - 12 : 256, top = 48, bottom = 250;
        var x = Draw.scale(log, domain[0], domain[1], [left, right]);
        var ticks = log ? Draw.logTicks(domain[0], domain[1], 6) : x.ticks(4);
        var y = tail ? Draw.scale(true, rare, 1, [bottom, top])
                     : Draw.scale(false, 0, 1, [bottom, top]);
        Draw.axes(svg, x, y, {
          xTicks: ticks, xFormat: function (v) { return M.digits(v, 3); },
          yTicks: tail ? Draw.logTicks(rare, 1, 8) : [0, 0.25, 0.5, 0.75, 1],
          yFormat: function (v) { return tail ? M.digits(v * 100, 2) + " %" : v * 100 + " %"; },
          xTitle: "completion time (" + u.name + (log ? ", log)" : ")"),
          title: tail ? "took longer than that" : "completed within",
        });
        arms.forEach(function (a) {
          var d = "M" + x(domain[0]) + "," + y(tail ? 1 : 0);
          var end = y(tail ? rare : 1);
          a.points.forEach(function (p) {
            var rest = 1 - p.share;
            d += "H" + x(p.us / u.by) + "V" + (tail ? (rest < rare ? end : y(rest)) : y(p.share));
          });
          if (!tail) d += "H" + right;
          svg.append("path").attr("class", "line arm-" + a.index).attr("d", d);
        });
      });
      Draw.legend(svg, 44, 14, arms.map(function (a) {
        return { name: "arm-" + a.index, text: a.arm + (a.outstanding ? " (" + a.outstanding +
            " of " + a.messages + " unfinished: age)" : "") };
      }));
    },
  };

  // --- slowdown by size -------------------------------------------------------------------------

  var slowdown = {
    data: function (figure) {
      var arms = M.slowdown(scenarioOf(figure));
      var csv = [["arm", "up_to_bytes", "messages", "p50", "p95", "p99", "max"]];
      var table = [["arm", "size up to", "messages", "p50", "p95", "p99", "max"]];
      arms.forEach(function (a) {
        a.bins.forEach(function (b) {
          csv.push([a.arm, b.up_to_bytes, b.messages, b.p50, b.p95, b.p99, b.max]);
          table.push([a.arm, M.sizeName(b.up_to_bytes), String(b.messages)].concat(
              [b.p50, b.p95, b.p99, b.max].map(function (v) { return M.digits(v, 4); })));
        });
      });
      return {
        csv: csv, table: table,
        label: "Slowdown by message size. " + arms.map(function (a) {
          return a.arm + ": p99 " + a.bins.map(function (b) {
            return M.digits(b.p99, 3) + " up to " + M.sizeName(b.up_to_bytes);
          }).join(", ");
        }).join(". "),
      };
    },
    draw: function (box, data, figure) {
      var arms = M.slowdown(scenarioOf(figure)).map(function (a) {
        var drawn = a.bins.filter(function (b) { return b.messages >= 10; });
        return { arm: a.arm, index: a.index, bins: drawn.length ? drawn : a.bins };
      });
      var sizes = d3.set([].concat.apply([], arms.map(function (a) {
        return a.bins.map(function (b) { return b.up_to_bytes; });
      }))).values().map(Number).sort(d3.ascending);
      var width = 540, left = 52, right = width - 14, top = 44, bottom = 250;
      var svg = Draw.canvas(box, width, 300, data.label);
      var x = d3.scale.ordinal().domain(sizes).rangePoints([left, right], 1);
      x.range = function () { return [left, right]; };
      var all = [].concat.apply([], arms.map(function (a) {
        return [].concat.apply([], a.bins.map(function (b) { return [b.p50, b.p99]; }));
      }));
      var y = Draw.scale(true, Math.max(0.5, d3.min(all) / 1.15), d3.max(all) * 1.15, [bottom, top]);
      var every = Math.ceil(sizes.length / 9);
      Draw.axes(svg, x, y, {
        xTicks: sizes.filter(function (s, i) { return (sizes.length - 1 - i) % every === 0; }),
        xFormat: M.sizeName, yFormat: function (v) { return M.digits(v, 3); },
        xTitle: "message size, up to", title: "slowdown (log): p99 solid, median dashed",
      });
      arms.forEach(function (a, place) {
        var shift = sizes.length === 1 ? (place - (arms.length - 1) / 2) * 40 : 0;
        ["p50", "p99"].forEach(function (q) {
          svg.append("path").attr("class", "line arm-" + a.index + (q === "p50" ? " dashed" : ""))
              .attr("d", d3.svg.line().x(function (b) { return x(b.up_to_bytes) + shift; })
                  .y(function (b) { return y(b[q]); })(a.bins));
          a.bins.forEach(function (b) {
            svg.append("circle").attr("cx", x(b.up_to_bytes) + shift).attr("cy", y(b[q]))
                .attr("r", q === "p50" ? 2.5 : 4)
                .attr("class", "arm-" + a.index + " point" + (b.messages < 100 ? " hollow" : ""))
                .append("title").text(a.arm + ", up to " + M.sizeName(b.up_to_bytes) + ", " +
                    b.messages + " messages: " + q + " " + M.digits(b[q], 4));
          });
        });
      });
      Draw.legend(svg, left, 14, arms.map(function (a) {
        return { name: "arm-" + a.index, text: a.arm };
      }));
    },
  };

  // --- costs and limits -------------------------------------------------------------------------

  // Of the time with data to send; contexts that have nothing to send are held back by nobody.
  var limits = ["grant", "path", "window", "uplink", "credit", "port"];
  function limiterRows() {
    var rows = [];
    M.results.scenarios.forEach(function (scenario) {
      M.results.arms.forEach(function (arm) {
        var shares = limits.map(function (l) { return M.mean(scenario, arm, "limited_" + l); });
        var busy = shares.reduce(function (a, b) { return a + b; }, 0);
        if (shares.indexOf(null) >= 0 || busy <= 0) return;
        rows.push({ scenario: scenario, arm: arm, busy: busy,
                    shares: shares.map(function (s) { return s / busy; }) });
      });
    });
    return rows;
  }
  var limiters = {
    data: function () {
      var rows = limiterRows();
      return {
        csv: [["scenario", "arm", "share_of_time_with_data"].concat(limits)].concat(
            rows.map(function (r) { return [r.scenario, r.arm, r.busy].concat(r.shares); })),
        label: "Stacked bars, what held senders back. " + rows.map(function (r) {
          return r.scenario + ", " + r.arm + ": " + r.shares.map(function (s, i) {
            return s >= 0.005 ? limits[i] + " " + Math.round(s * 100) + " %" : "";
          }).filter(Boolean).join(", ");
        }).join(". "),
        empty: rows.length === 0 ? "No run has finished." : "",
      };
    },
    draw: function (box, data) {
      var rows = limiterRows();
      var longest = d3.max(rows, function (r) { return (r.scenario + ", " + r.arm).length; });
      var width = 1080, left = longest * Draw.letter + 16, right = width - 120, top = 40;
      var arms = M.results.arms.length;
      function place(i) { return top + i * 22 + Math.floor(i / arms) * 8; }
      var bottom = place(rows.length - 1) + 26;
      var svg = Draw.canvas(box, width, bottom + 38, data.label);
      var x = Draw.scale(false, 0, 1, [left, right]);
      Draw.axes(svg, x, d3.scale.linear().range([bottom, top - 4]), {
        yTicks: [], xFormat: function (v) { return v * 100 + " %"; },
        xTitle: "share of the time with data to send",
      });
      Draw.text(svg, width - 2, top - 12, "has data to send", "hint", "end");
      rows.forEach(function (r, i) {
        var from = 0, y = place(i);
        Draw.text(svg, left - 8, y + 13, r.scenario + ", " + r.arm, "label", "end");
        Draw.text(svg, width - 2, y + 13, M.digits(r.busy * 100, 3) + " % of time", "value", "end");
        r.shares.forEach(function (share, k) {
          if (!share) return;
          svg.append("rect").attr("class", "limit-" + k).attr("x", x(from)).attr("y", y)
              .attr("width", x(from + share) - x(from)).attr("height", 18).append("title")
              .text(limits[k] + " " + M.digits(share * 100, 3) + " %");
          if (share > 0.09) {
            Draw.text(svg, x(from + share / 2), y + 13, limits[k] + " " + Math.round(share * 100) + " %",
                "inside", "middle");
          }
          from += share;
        });
      });
      var at = left;
      limits.forEach(function (l, k) {
        if (!rows.some(function (r) { return r.shares[k] >= 0.0005; })) return;
        svg.append("rect").attr("class", "limit-" + k).attr("x", at).attr("y", 6).attr("width", 12)
            .attr("height", 12);
        Draw.text(svg, at + 17, 16, l, "legend");
        at += 17 + l.length * Draw.letter + 18;
      });
    },
  };

  var costKinds = [
    ["control_overhead", "control overhead"], ["drops", "drops"],
    ["retransmitted_bytes", "retransmitted"], ["pfc_pause_us", "PFC pause time"],
    ["cnps", "CNPs"], ["ecn_marks", "ECN marks"],
  ];
  function costRows() {
    var rows = [];
    M.results.scenarios.forEach(function (scenario) {
      M.results.arms.forEach(function (arm, index) {
        rows.push({ scenario: scenario, arm: arm, index: index % 6,
                    values: costKinds.map(function (k) { return M.mean(scenario, arm, k[0]); }) });
      });
    });
    return rows;
  }
  var costs = {
    data: function () {
      var rows = costRows();
      return {
        csv: [["scenario", "arm"].concat(costKinds.map(function (k) { return k[0]; }))].concat(
            rows.map(function (r) { return [r.scenario, r.arm].concat(r.values); })),
        label: "Bars. " + rows.map(function (r) {
          return r.scenario + ", " + r.arm + ": " + costKinds.map(function (k, i) {
            return r.values[i] ? k[1] + " " + M.cell(r.scenario, r.arm, k[0]) : "";
          }).filter(Boolean).join(", ");
        }).join(". "),
      };
    },
    draw: function (box, data) {
      var rows = costRows();
      var kinds = d3.range(costKinds.length).filter(function (k) {
        return rows.some(function (r) { return r.values[k] > 0; });
      });
      var longest = d3.max(rows, function (r) { return (r.scenario + ", " + r.arm).length; });
      var width = 1080, left = longest * Draw.letter + 16, top = 34;
      var arms = M.results.arms.length;
      function place(i) { return top + i * 20 + Math.floor(i / arms) * 8; }
      var svg = Draw.canvas(box, width, place(rows.length - 1) + 26, data.label);
      var column = (width - left) / Math.max(1, kinds.length);
      rows.forEach(function (r, i) {
        Draw.text(svg, left - 8, place(i) + 12, r.scenario + ", " + r.arm, "label", "end");
      });
      kinds.forEach(function (k, c) {
        var from = left + c * column;
        var x = d3.scale.linear().range([0, column - 78])
            .domain([0, d3.max(rows, function (r) { return r.values[k]; })]);
        Draw.text(svg, from, top - 12, costKinds[k][1], "panel-title");
        svg.append("path").attr("class", "axis")
            .attr("d", "M" + from + "," + (top - 4) + "V" + (place(rows.length - 1) + 20));
        rows.forEach(function (r, i) {
          var v = r.values[k];
          svg.append("rect").attr("class", "bar arm-" + r.index).attr("x", from).attr("y", place(i) + 1)
              .attr("width", v ? Math.max(1, x(v)) : 0).attr("height", 15);
          Draw.text(svg, from + (v ? x(v) : 0) + 5, place(i) + 12,
              M.cell(r.scenario, r.arm, costKinds[k][0]), "value");
        });
      });
    },
  };

  return {
    overview: forest(overviewRows), effects: forest(scenarioRows), pairs: pairs, fct: fct,
    slowdown: slowdown, limiters: limiters, costs: costs, scenarioOf: scenarioOf,
  };
})();
