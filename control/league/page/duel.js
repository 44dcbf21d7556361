// Two entries in one scenario: queue, rate and pauses of the first repetition over time, every
// measure side by side, and the commands that repeat both.
"use strict";
(function () {
  var L = League, results = L.results;
  var scenario = document.getElementById("duel-scenario");
  var first = document.getElementById("duel-a"), second = document.getElementById("duel-b");

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
      { key: "queue_bytes", title: "Queue, fullest switch port", kind: "bytes" },
      { key: "rate_gbps", title: "Payload delivered, all hosts", kind: "Gb/s" },
      { key: "paused_us", title: "Paused, per interval", kind: "port-us" },
    ].filter(function (p) { return shown.some(function (c) { return c.course[p.key]; }); });
    panels.forEach(function (p) {
      p.tall = 150;
      p.lines = shown.map(function (c, k) {
        return { name: c.entry, index: k, points: points(c.course, c.course[p.key] || []) };
      }).filter(function (l) { return l.points.length !== 0; });
      p.largest = d3.max(p.lines, function (l) { return d3.max(l.points, function (q) { return q.value; }); }) || 1;
    });
    Draw.course(box, 1260, "Course over time of " + shown.map(function (c) { return c.entry; }).join(" and ") +
        " in " + shown[0].scenario + "; the figures are in the table below.", panels);
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
      Page.copyButton(code);
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

  Array.prototype.forEach.call(document.querySelectorAll("#method .command code"), Page.copyButton);
  Page.link(document.getElementById("downloads"), "the results file (JSON)", "application/json",
      results.name + "." + results.size + ".json", Page.text);
  document.documentElement.setAttribute("data-drawn", "yes");
})();
