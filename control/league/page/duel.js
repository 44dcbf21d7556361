// Two entries in one scenario: queue, rate and pauses of the first repetition over time, every
// measure side by side, and the commands that repeat both.
"use strict";
(function () {
  var L = League, results = L.results;
  var scenario = document.getElementById("duel-scenario");
  var first = document.getElementById("duel-a"), second = document.getElementById("duel-b");
  var lowest = 1000;  // bytes: the bottom of the queue axis; what is below lies on it

  function points(course, values) {
    return values.map(function (v, i) {
      return { us: Math.min((i + 1) * course.interval_us, course.end_us), value: v };
    });
  }
  function chart(cells) {
    var box = document.getElementById("duel-chart");
    box.textContent = "";
    var shown = cells.filter(function (c) { return c.course; });
    if (!window.d3 || shown.length === 0) {
      box.textContent = window.d3 ? "Nothing was recorded." : "Built without the chart library.";
      return;
    }
    var panels = [
      { key: "queue_bytes", title: "fullest switch port (log; what is below 1 KB lies on the axis)", log: true, unit: "bytes" },
      { key: "rate_gbps", title: "payload delivered, all hosts (Gb/s)", unit: "Gb/s" },
      { key: "paused_us", title: "paused, per interval (port-us)", unit: "us" },
    ].filter(function (p) { return shown.some(function (c) { return c.course[p.key]; }); });
    var width = 1260, left = 76, right = width - 12, tall = 150, gap = 38, top = 44;
    var height = top + panels.length * (tall + gap) + 6;
    var label = "Course over time of " + shown.map(function (c) { return c.entry; }).join(" and ") +
        " in " + shown[0].scenario + "; the figures are in the table below.";
    var svg = Draw.canvas(box, width, height, label);
    var end = d3.max(shown, function (c) { return c.course.end_us; });
    var by = end >= 2000 ? 1000 : 1;
    var x = Draw.scale(false, 0, end / by, [left, right]);
    var y0 = top;
    panels.forEach(function (panel, i) {
      var largest = d3.max(shown, function (c) { return d3.max(c.course[panel.key] || [0]); }) || 1;
      var bottom = y0 + tall;
      var y = panel.log ? Draw.scale(true, lowest, Math.max(largest * 1.2, lowest * 10), [bottom, y0])
                        : Draw.scale(false, 0, largest * 1.05, [bottom, y0]);
      var last = i === panels.length - 1;
      Draw.axes(svg, x, y, {
        xFormat: last ? function (v) { return L.digits(v, 4); } : null,
        xTitle: last ? "virtual time (" + (by === 1 ? "us" : "ms") + ")" : "",
        yTicks: panel.log ? Draw.logTicks(lowest, largest * 1.2, 7) : y.ticks(5),
        yFormat: function (v) { return panel.log ? L.words(v, "bytes", 2) : L.digits(v, 3); },
        title: panel.title,
      });
      shown.forEach(function (c, k) {
        var line = points(c.course, c.course[panel.key] || []);
        if (line.length === 0) return;
        function up(v) { return y(panel.log ? Math.max(lowest, v) : v).toFixed(1); }
        var d = "M" + left + "," + up(line[0].value);
        line.forEach(function (p) { d += "V" + up(p.value) + "H" + x(p.us / by).toFixed(1); });
        svg.append("path").attr("class", "line fine arm-" + k).attr("d", d);
      });
      y0 = bottom + gap;
    });
    Draw.legend(svg, left, 14, shown.map(function (c, k) { return { name: "arm-" + k, text: c.entry }; }));
    var longest = shown.reduce(function (a, c) { return c.course.end_us > a.course.end_us ? c : a; });
    var steps = points(longest.course, longest.course.queue_bytes).map(function (p) { return p.us / by; });
    Draw.reader(svg, x, top, y0 - gap, steps, function (t) {
      return L.digits(t, 4) + (by === 1 ? " us: " : " ms: ") + shown.map(function (c) {
        var i = Math.ceil(t * by / c.course.interval_us - 1e-9) - 1;
        if (i >= c.course.queue_bytes.length) return c.entry + " over";
        return c.entry + " " + L.words(c.course.queue_bytes[i], "bytes") + ", " +
            L.digits(c.course.rate_gbps[i], 3) + " Gb/s";
      }).join("; ");
    });
  }
  function table(a, b) {
    var box = document.getElementById("duel-table");
    box.innerHTML = "<table class=\"small\"><thead><tr></tr></thead><tbody></tbody></table>";
    var same = a === b;
    ["measure", a.entry, "interval"].concat(same ? [] : [b.entry, "interval", b.entry + " / " + a.entry, "interval"])
        .forEach(function (words, i) {
          var th = document.createElement("th");
          th.scope = "col";
          th.className = i === 0 ? "" : "n";
          th.textContent = words;
          box.querySelector("tr").appendChild(th);
        });
    results.measures.forEach(function (m) {
      var x = a.measures[m.name], y = b.measures[m.name];
      if (x.mean === null && y.mean === null) return;
      var row = [m.label, L.words(x.mean, m.unit), L.interval(x, m.unit)];
      if (!same) {
        var r = L.ratio(x, y);
        row.push(L.words(y.mean, m.unit), L.interval(y, m.unit), r ? "x" + L.digits(r.ratio, 3) : "-",
            r && r.low !== undefined ? "[x" + L.digits(r.low, 3) + " .. x" + L.digits(r.high, 3) + "]" : "");
      }
      var tr = document.createElement("tr");
      row.forEach(function (words, i) {
        var td = document.createElement(i === 0 ? "th" : "td");
        if (i === 0) td.scope = "row"; else td.className = "n";
        td.textContent = words;
        if (i === 5 && L.ratio(x, y)) {
          var pair = L.ratio(x, y), good = m.better === "higher" ? pair.ratio > 1 : pair.ratio < 1;
          var sure = pair.low > 1 || pair.high < 1;
          td.className = "n effect";
          if (sure && m.better !== "neither") td.className += good ? " verdict better" : " verdict worse";
        }
        tr.appendChild(td);
      });
      box.querySelector("tbody").appendChild(tr);
    });
  }
  function commands(cells) {
    var box = document.getElementById("duel-commands");
    box.textContent = "";
    cells.forEach(function (c) {
      var p = document.createElement("p"), code = document.createElement("code");
      p.className = "command";
      code.textContent = c.command;
      p.appendChild(code);
      box.appendChild(p);
      L.copyButton(code);
    });
    var note = document.createElement("p");
    note.className = "remarks";
    note.textContent = "Seeds of the repetitions: " + results.seeds.join(", ") + ".";
    box.appendChild(note);
  }
  function show() {
    var a = L.cell(scenario.value, first.value), b = L.cell(scenario.value, second.value);
    var cells = a === b ? [a] : [a, b];
    document.getElementById("duel-title").textContent = scenario.value + ": " +
        cells.map(function (c) { return c.entry; }).join(" against ");
    chart(cells);
    table(a, b);
    commands(cells);
  }
  function named(list) { return list.map(function (i) { return { value: i.name, text: i.name }; }); }

  var standing = results.edge.concat(results["switch"]);
  var winner = standing[0].entry;
  var other = (results.entries.filter(function (e) { return e.name !== winner; })[0] || { name: winner }).name;
  L.options(scenario, named(results.scenarios), results.scenarios[0].name);
  L.options(first, named(results.entries), other);
  L.options(second, named(results.entries), winner);
  [scenario, first, second].forEach(function (select) { select.addEventListener("change", show); });
  HeatMap.onChoose(function (cell, follow) {
    scenario.value = cell.scenario;
    second.value = cell.entry;
    show();
    if (follow) document.getElementById("duel").scrollIntoView();
  });
  show();

  Array.prototype.forEach.call(document.querySelectorAll("#method .command code"), L.copyButton);
  var a = document.createElement("a");
  a.textContent = "the results file (JSON)";
  a.download = results.name + "." + results.size + ".json";
  a.href = "data:application/json;charset=utf-8," + encodeURIComponent(L.text);
  a.className = "data";
  document.getElementById("downloads").appendChild(a);
  document.documentElement.setAttribute("data-drawn", "yes");
})();
