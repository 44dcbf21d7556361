// What the page shows, read from the results inside it; needs no chart library.
"use strict";
var League = (function () {
  var results = Page.results, digits = Page.digits;
  var measures = {}, cells = {};
  results.measures.forEach(function (m) { measures[m.name] = m; });
  results.cells.forEach(function (c) { cells[c.scenario + "\n" + c.entry] = c; });

  // A value with its unit: 93.1 %, 1.21 MB.
  function words(value, unit, n) {
    if (value === null || value === undefined || isNaN(value)) return "-";
    if (unit === "share") return digits(value * 100, n || 3) + " %";
    if (Page.scales[unit]) return Page.quantity(value, unit, n);
    return digits(value, n || 3) + (unit === "Gb/s" ? " Gb/s" : "");
  }
  function interval(summary, unit) {
    if (!summary || summary.low === null) return "";
    if (summary.low === summary.high) return "the same in every repetition";
    return "[" + words(summary.low, unit) + " .. " + words(summary.high, unit) + "]";
  }

  // The mean ratio b / a over repetitions that both have, and its interval: logarithms pair by pair.
  function ratio(a, b) {
    var logs = [];
    a.values.forEach(function (v, i) {
      var w = b.values[i];
      if (v > 0 && w > 0) logs.push(Math.log(w / v));
    });
    if (logs.length === 0 || logs.length !== a.values.length) return null;
    var n = logs.length, sum = 0, squares = 0;
    logs.forEach(function (l) { sum += l; });
    logs.forEach(function (l) { squares += (l - sum / n) * (l - sum / n); });
    var out = { ratio: Math.exp(sum / n) };
    if (n > 1 && results.t_quantile !== null) {
      var half = results.t_quantile * Math.sqrt(squares / (n - 1) / n);
      out.low = Math.exp(sum / n - half);
      out.high = Math.exp(sum / n + half);
    }
    return out;
  }

  function options(select, names, chosen) {
    names.forEach(function (item) {
      var option = document.createElement("option");
      option.value = item.value;
      option.textContent = item.text;
      option.selected = item.value === chosen;
      select.appendChild(option);
    });
  }

  return {
    results: results, measures: measures, digits: digits, words: words, interval: interval,
    ratio: ratio, options: options,
    cell: function (scenario, entry) { return cells[scenario + "\n" + entry]; },
  };
})();
