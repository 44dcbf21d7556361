// Queue, rate, pauses and signals of one repetition over time: panels above one another with one
// time axis, all arms in each.
"use strict";
Charts.time = (function () {
  var M = Model;
  var lowest = 1000;  // bytes: the bottom of a logarithmic queue axis; below it lines run on it

  function value(panel, v) {
    if (panel.kind === "bytes") return M.quantity(v, "bytes");
    return M.digits(v, 3) + (panel.kind ? " " + panel.kind : "");
  }
  function at(points, us) {  // of the interval that contains us
    var i = 0;
    while (i < points.length - 1 && points[i].us < us) ++i;
    return points[i].us >= us - 1e-9 ? points[i].value : null;
  }

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
        table.push([line.arm, M.quantity(points[points.length - 1].us, "us", 4)].concat(
            panels.map(function (p) {
              return value(p, Math.max.apply(null, p.lines[k].points.map(function (q) { return q.value; })));
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
      var width = 1080, left = 76, right = width - 12, tall = 130, low = 74, gap = 36, top = 44;
      var heights = panels.map(function (p, i) { return i < 2 ? tall : low; });
      var height = top + d3.sum(heights) + gap * panels.length + 12;
      var svg = Draw.canvas(box, width, height, data.label);
      var end = d3.max(panels[0].lines, function (l) { return l.points[l.points.length - 1].us; });
      var u = M.unit("us", end / 2);
      var x = Draw.scale(false, 0, end / u.by, [left, right]);
      var y0 = top;
      panels.forEach(function (panel, i) {
        var bottom = y0 + heights[i];
        var b = panel.kind === "bytes" ? { by: 1, name: "" } : null;
        var y = panel.log ? Draw.scale(true, lowest, Math.max(panel.largest * 1.2, lowest * 10), [bottom, y0])
                          : Draw.scale(false, 0, panel.largest * 1.05, [bottom, y0]);
        Draw.axes(svg, x, y, {
          xFormat: i === panels.length - 1 ? function (v) { return M.digits(v, 4); } : null,
          xTitle: i === panels.length - 1 ? "virtual time (" + u.name + ")" : "",
          yTicks: panel.log ? Draw.logTicks(lowest, panel.largest * 1.2, 7) : y.ticks(heights[i] > 100 ? 5 : 3),
          yFormat: function (v) { return b ? M.quantity(v, "bytes", 2) : M.digits(v, 3); },
          title: panel.title + (panel.kind === "bytes" ? " (log; what is below 1 KB lies on the axis)"
                                                       : panel.kind ? " (" + panel.kind + ")" : ""),
        });
        function draw(lines, extra) {
          lines.forEach(function (l) {
            var d = "M" + left + "," + (panel.log ? bottom : y(l.points[0].value));
            if (panel.log) d = "M" + left + "," + y(Math.max(lowest, l.points[0].value));
            l.points.forEach(function (p) {
              d += "V" + y(panel.log ? Math.max(lowest, p.value) : p.value).toFixed(1) +
                  "H" + x(p.us / u.by).toFixed(1);
            });
            svg.append("path").attr("class", "line fine " + extra + " arm-" + l.index).attr("d", d);
          });
        }
        if (panel.thin) draw(panel.thin, "thin");
        draw(panel.lines, "");
        y0 = bottom + gap;
      });
      Draw.legend(svg, left, 14, panels[0].lines.map(function (l) {
        return { name: "arm-" + l.index, text: l.arm };
      }));
      var steps = panels[0].lines.reduce(function (a, l) {
        return l.points.length > a.length ? l.points : a;
      }, []).map(function (p) { return p.us / u.by; });
      Draw.reader(svg, x, top, y0 - gap, steps, function (t) {
        return M.digits(t, 4) + " " + u.name + ": " + panels.slice(0, 2).map(function (p) {
          return p.title.split(",")[0].toLowerCase() + " " + p.lines.map(function (l) {
            var v = at(l.points, t * u.by);
            return l.arm + " " + (v === null ? "over" : value(p, v));
          }).join(", ");
        }).join("; ");
      });
    },
  };
})();
