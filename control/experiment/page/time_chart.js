// Queue, rate, pauses and signals of one repetition over time: panels above one another with one
// time axis, all arms in each.
"use strict";
Charts.time = (function () {
  var M = Model;

  return {
    data: function (figure) {
      var scenario = Charts.scenarioOf(figure);
      var csv = null;
      M.results.detail.arms.forEach(function (a) {
        if (a.scenario !== scenario || !a.series) return;
        var names = Object.keys(a.series).filter(function (n) { return Array.isArray(a.series[n]); });
        if (!csv) csv = [["arm", "until_us"].concat(names)];
        a.series[names[0]].forEach(function (v, i) {
          csv.push([a.arm, Math.min((i + 1) * a.series.interval_ps, a.series.end_ps) / 1e6].concat(
              names.map(function (n) { return a.series[n][i]; })));
        });
      });
      var panels = M.course(scenario);
      var table = [["arm", "lasts"].concat(panels.map(function (p) { return p.title + ", greatest"; }))];
      (panels[0] ? panels[0].lines : []).forEach(function (line, k) {
        var points = line.points;
        table.push([line.name, M.quantity(points[points.length - 1].us, "us", 4)].concat(
            panels.map(function (p) {
              return Page.amount(Math.max.apply(null, p.lines[k].points.map(function (q) { return q.value; })), p.kind);
            })));
      });
      return {
        csv: csv, table: table,
        label: "Lines over time. " + table.slice(1).map(function (row) {
          return row.map(function (cell, i) { return i === 0 ? cell : table[0][i] + " " + cell; })
              .join(", ");
        }).join(". "),
        empty: panels.length === 0 ? "Every signal stayed 0." : "",
      };
    },
    draw: function (box, data, figure) {
      var panels = M.course(Charts.scenarioOf(figure));
      panels.forEach(function (p, i) { p.tall = i < 2 ? 130 : 74; });
      Draw.course(box, 1080, data.label, panels);
    },
  };
})();
