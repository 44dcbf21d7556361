// What the page shows, read from the results inside it; needs no chart library.
"use strict";
var League = (function () {
  var text = document.getElementById("results").textContent.trim() + "\n";
  var results = JSON.parse(text);
  var measures = {}, cells = {};
  results.measures.forEach(function (m) { measures[m.name] = m; });
  results.cells.forEach(function (c) { cells[c.scenario + "\n" + c.entry] = c; });

  function digits(value, n) {
    if (value === null || isNaN(value)) return "-";
    if (value === 0) return "0";
    var size = Math.abs(value);
    if (size >= Math.pow(10, n)) return value.toFixed(0);
    return String(Number(value.toPrecision(n)));
  }
  var scales = {
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]],
    us: [[1e6, "s"], [1e3, "ms"], [1, "us"]],
  };
  // A value with its unit: 93.1 %, 1.21 MB.
  function words(value, unit, n) {
    if (value === null || value === undefined || isNaN(value)) return "-";
    if (unit === "share") return digits(value * 100, n || 3) + " %";
    var steps = scales[unit];
    if (!steps) return digits(value, n || 3) + (unit === "Gb/s" ? " Gb/s" : "");
    var step = steps.filter(function (s) { return Math.abs(value) >= s[0]; })[0] || steps[steps.length - 1];
    return digits(value / step[0], n || 3) + " " + step[1];
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

  function copyButton(code) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", function () {
      var range = document.createRange();
      range.selectNodeContents(code);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
      button.textContent = "copied";
      setTimeout(function () { button.textContent = "copy"; }, 1500);
    });
    code.parentNode.appendChild(button);
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
    results: results, text: text, measures: measures, digits: digits, words: words,
    interval: interval, ratio: ratio, copyButton: copyButton, options: options,
    cell: function (scenario, entry) { return cells[scenario + "\n" + entry]; },
  };
})();
