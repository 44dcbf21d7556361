// Small multiples: a panel for each metric, all over the same key; colours are values of another one.
// A dot is a point of the sweep, a line the mean over the points that share both values.
"use strict";
(function () {
  var S = Sweep, results = S.results;
  var mostSeries = 6, mostSteps = 24;
  var xSelect = document.getElementById("x-key"), bySelect = document.getElementById("by-key");
  var box = document.getElementById("multiples");

  function option(select, value, words, chosen) {
    var o = document.createElement("option");
    o.value = value;
    o.textContent = words;
    o.selected = chosen;
    select.appendChild(o);
  }
  function distinct(values) {
    return values.filter(function (v, i) { return values.indexOf(v) === i; });
  }

  // Dots of one metric: place on the x axis, value, series.
  function dots(metric, x, by) {
    return results.points.map(function (p) {
      var value = p.metrics[metric.name];
      return { at: x.at(p), value: value ? value[0] : null, point: p,
               series: by ? by.words.indexOf(p.settings[by.key]) : 0 };
    }).filter(function (d) { return d.at !== null && d.value !== null && d.series >= 0; });
  }
  function sentence(metric, d) {
    return results.keys.filter(function (k) { return d.point.settings[k] !== undefined; })
        .map(function (k) { return k + "=" + d.point.settings[k]; }).join(", ") + ": " +
        metric.label + " " + S.words(d.value, metric.unit);
  }

  function panel(metric, x, by) {
    var all = dots(metric, x, by);
    if (all.length === 0) return;
    var figure = document.createElement("figure");
    box.appendChild(figure);
    var width = 400, height = 250, left = 78, right = width - 12, top = 34, bottom = height - 44;
    var svg = Draw.canvas(figure, width, height, metric.label + " over " + x.key +
        (by ? ", by " + by.key : "") + "; the figures are in the table below.");
    var values = all.map(function (d) { return d.value; });
    var places = all.map(function (d) { return d.at; });
    var low = d3.min(places), high = d3.max(places);
    var logX = x.numeric && low > 0 && high / low > 20;
    var pad = logX ? 1 : (high - low || 1) * 0.06;
    var xs = Draw.scale(logX, logX ? low / 1.1 : low - pad, logX ? high * 1.1 : high + pad, [left, right]);
    var least = d3.min(values), most = d3.max(values);
    var logY = least > 0 && most / least > 30;
    var ys = Draw.scale(logY, logY ? least / 1.3 : Math.min(0, least), logY ? most * 1.3 : (most * 1.08 || 1),
        [bottom, top]);
    Draw.axes(svg, xs, ys, {
      xTicks: x.numeric ? x.words.length > 8 ? null : distinct(places) : distinct(places),
      xFormat: function (v) {
        if (!x.numeric) return x.words[v] || "";
        var exact = x.words.filter(function (w, i) { return x.at({ settings: one(x.key, w) }) === v; })[0];
        return exact || Page.digits(v, 3);
      },
      yFormat: function (v) { return S.words(v, metric.unit); },
      xTitle: x.key + (logX ? " (log)" : ""),
      title: metric.label + (metric.better === "higher" ? ", higher is better" : ", lower is better") +
          (logY ? " (log)" : ""),
    });
    distinct(all.map(function (d) { return d.series; })).forEach(function (series) {
      var mine = all.filter(function (d) { return d.series === series; });
      var steps = distinct(mine.map(function (d) { return d.at; })).sort(d3.ascending);
      if (steps.length > 1 && steps.length <= mostSteps) {
        var line = steps.map(function (at) {
          var mean = d3.mean(mine.filter(function (d) { return d.at === at; }), function (d) { return d.value; });
          return xs(at).toFixed(1) + "," + ys(mean).toFixed(1);
        });
        svg.append("path").attr("class", "line fine arm-" + series).attr("d", "M" + line.join("L"));
      }
      mine.forEach(function (d) {
        svg.append("circle").attr("class", "dot arm-" + series).attr("r", 2.5)
            .attr("cx", xs(d.at).toFixed(1)).attr("cy", ys(d.value).toFixed(1))
            .append("title").text(sentence(metric, d));
      });
    });
  }
  function one(key, word) {
    var settings = {};
    settings[key] = word;
    return settings;
  }
  function legend(by) {
    var list = document.getElementById("series");
    list.textContent = "";
    if (!by) return;
    by.words.forEach(function (word, i) {
      var item = document.createElement("span");
      item.className = "arm-" + i;
      item.textContent = by.key + " = " + word;
      list.appendChild(item);
    });
  }
  function show() {
    box.textContent = "";
    var x = S.axis(xSelect.value), by = bySelect.value ? S.axis(bySelect.value) : null;
    legend(by);
    results.metrics.filter(function (m) { return m.headline; })
        .forEach(function (m) { panel(m, x, by); });
  }

  if (window.d3) {
    var first = S.axes.filter(function (a) { return a.numeric; })[0] || S.axes[0];
    S.axes.forEach(function (a) { option(xSelect, a.key, a.key, a === first); });
    option(bySelect, "", "nothing", true);
    var split = S.axes.filter(function (a) { return a.words.length <= mostSeries; });
    var other = split.filter(function (a) { return a !== first && a.words.length > 1; })[0];
    split.forEach(function (a) { option(bySelect, a.key, a.key, a === other); });
    [xSelect, bySelect].forEach(function (s) { s.addEventListener("change", show); });
    show();
  }
  Array.prototype.forEach.call(document.querySelectorAll(".command code"), Page.copyButton);
  Page.link(document.getElementById("downloads"), "the results file (JSON)", "application/json",
      results.name + ".sweep.json", Page.text);
  document.documentElement.setAttribute("data-drawn", "yes");
})();
