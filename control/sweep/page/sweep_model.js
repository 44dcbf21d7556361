// What the page shows, read from the results inside it; needs no chart library.
"use strict";
var Sweep = (function () {
  var results = Page.results;
  // What a unit's prefix multiplies by, and which units are of one kind.
  var prefixes = { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12,
                   Ki: 1024, Mi: 1048576, Gi: 1073741824, Ti: 1099511627776 };
  var times = { ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 };

  // A value as a number with its kind; null for what is a name.
  function quantity(word) {
    var parts = /^(-?[0-9.]+(?:e[-+]?[0-9]+)?) ?([A-Za-z/]*)$/.exec(word || "");
    if (!parts || isNaN(Number(parts[1]))) return null;
    var number = Number(parts[1]), unit = parts[2];
    if (unit === "") return { kind: "", value: number };
    if (times[unit]) return { kind: "s", value: number * times[unit] };
    var sized = /^(Ki|Mi|Gi|Ti|k|K|M|G|T|)(B|b\/s)$/.exec(unit);
    return sized ? { kind: sized[2], value: number * prefixes[sized[1]] } : null;
  }

  // Of a key its distinct values: in the order of the numbers, or of the file where they are names.
  var axes = results.keys.map(function (key) {
    var words = [];
    results.points.forEach(function (p) {
      var word = p.settings[key];
      if (word !== undefined && words.indexOf(word) < 0) words.push(word);
    });
    var numbers = words.map(quantity);
    var numeric = words.length > 1 && numbers.every(function (q) {
      return q !== null && q.kind === numbers[0].kind;
    });
    if (numeric) words.sort(function (a, b) { return quantity(a).value - quantity(b).value; });
    return {
      key: key, words: words, numeric: numeric,
      at: function (point) {
        var word = point.settings[key];
        if (word === undefined) return null;
        return numeric ? quantity(word).value : words.indexOf(word);
      },
    };
  });
  function axis(key) { return axes.filter(function (a) { return a.key === key; })[0]; }

  // A value with its unit: 93.1 %, 1.21 MB.
  function words(value, unit) {
    if (value === null || value === undefined) return "-";
    if (unit === "share") return Page.digits(value * 100, 3) + " %";
    if (Page.scales[unit]) return Page.quantity(value, unit);
    if (unit === "packets") return Page.digits(value, 3) + " pkt";
    return Page.digits(value, 3) + (unit ? " " + unit : "");
  }
  return { results: results, axes: axes, axis: axis, words: words };
})();
