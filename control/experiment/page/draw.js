// Drawing with D3 (version 3): axes, legends, a reading line. Colours and fonts are those of the
// style sheet, by class; `arm-N` is the colour of arm N.
"use strict";
var Draw = (function () {
  var letter = 6.4;  // width of a character at the size of labels

  function canvas(box, width, height, label) {
    var svg = d3.select(box).append("svg")
        .attr("viewBox", "0 0 " + width + " " + height).attr("role", "img")
        .attr("aria-label", label).style("max-width", width + "px");
    svg.append("title").text(label);
    return svg;
  }
  function text(g, x, y, words, name, anchor) {
    return g.append("text").attr("x", x).attr("y", y).attr("class", name || "")
        .style("text-anchor", anchor || "start").text(words);
  }

  // Tick values of a logarithmic axis: powers of ten, with 2 and 5 between where they are few.
  function logTicks(from, to, most) {
    var decades = Math.log(to / from) / Math.LN10;
    var steps = decades > 3 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
    var values = [];
    for (var e = Math.floor(Math.log(from) / Math.LN10) - 1; e <= Math.log(to) / Math.LN10; ++e) {
      steps.forEach(function (s) {
        var v = Number((s * Math.pow(10, e)).toPrecision(6));
        if (v >= from * 0.9999 && v <= to * 1.0001) values.push(v);
      });
    }
    while (values.length > (most || 9)) values = values.filter(function (v, i) { return i % 2 === 0; });
    return values;
  }

  // A scale over [from, to]; logarithmic unless the range is so narrow that ticks would be odd.
  function scale(log, from, to, range) {
    var s = log ? d3.scale.log() : d3.scale.linear();
    s.domain([from, to]).range(range);
    s.isLog = log;
    s.tickValues = log ? logTicks(from, to) : s.ticks(6);
    return s;
  }

  // Grid, tick labels and titles of a panel whose plot spans the ranges of x and y.
  function axes(g, x, y, options) {
    var left = x.range()[0], right = x.range()[1], bottom = y.range()[0], top = y.range()[1];
    var free = -Infinity;  // labels that would touch the one before are left out
    (options.xTicks || x.tickValues).slice().sort(d3.ascending).forEach(function (v) {
      g.append("line").attr("class", "grid")
          .attr("x1", x(v)).attr("x2", x(v)).attr("y1", top).attr("y2", bottom);
      if (!options.xFormat) return;
      var words = options.xFormat(v), half = words.length * letter / 2;
      if (x(v) - half < free) return;
      free = x(v) + half + 6;
      text(g, x(v), bottom + 15, words, "tick", "middle");
    });
    (options.yTicks || y.tickValues).forEach(function (v) {
      g.append("line").attr("class", "grid")
          .attr("x1", left).attr("x2", right).attr("y1", y(v)).attr("y2", y(v));
      if (options.yFormat) text(g, left - 6, y(v) + 4, options.yFormat(v), "tick", "end");
    });
    g.append("path").attr("class", "axis")
        .attr("d", "M" + left + "," + top + "V" + bottom + "H" + right);
    if (options.xTitle) {
      text(g, (left + right) / 2, bottom + 32, options.xTitle, "axis-title", "middle");
    }
    if (options.title) text(g, left, top - 8, options.title, "panel-title");
  }

  function legend(g, x, y, items) {
    items.forEach(function (item) {
      g.append("line").attr("class", "line " + item.name).attr("x1", x).attr("x2", x + 18)
          .attr("y1", y - 4).attr("y2", y - 4);
      text(g, x + 23, y, item.text, "legend");
      x += 23 + item.text.length * letter + 16;
    });
  }

  // Words at a place along x that is read with the mouse or, once the chart has the focus, with the
  // arrow keys. read(position) gives the line of text; positions are those of the scale.
  function reader(svg, x, top, bottom, steps, read) {
    var line = svg.append("line").attr("class", "reading").attr("y1", top).attr("y2", bottom)
        .style("display", "none");
    var words = text(svg, x.range()[1], 12, "", "reading-text", "end");
    var at = -1;
    function show(i) {
      at = Math.max(0, Math.min(steps.length - 1, i));
      line.style("display", null).attr("x1", x(steps[at])).attr("x2", x(steps[at]));
      words.text(read(steps[at]));
    }
    function hide() {
      line.style("display", "none");
      words.text("");
    }
    svg.append("rect").attr("class", "catch").attr("x", x.range()[0]).attr("y", top)
        .attr("width", x.range()[1] - x.range()[0]).attr("height", bottom - top)
        .on("mousemove", function () {
          show(d3.bisect(steps, x.invert(d3.mouse(this)[0])));
        })
        .on("mouseleave", hide);
    svg.attr("tabindex", 0).on("keydown", function () {
      var step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[d3.event.key];
      if (d3.event.key === "Escape") hide();
      if (!step) return;
      d3.event.preventDefault();
      show(at + step);
    }).on("blur", hide);
  }

  // Values over time: panels above one another with one time axis. A panel has title, kind (bytes: on
  // a logarithmic axis), largest, tall, lines and perhaps thin ones. A line has name, index and
  // points, the value of each interval at its end, `us`. The reading line reads the first two panels.
  function course(box, width, label, panels) {
    var lowest = 1000;  // bytes: the bottom of a logarithmic axis; below it lines run on it
    var left = 76, right = width - 12, gap = 36, top = 44;
    var height = top + d3.sum(panels, function (p) { return p.tall + gap; }) + 12;
    var svg = canvas(box, width, height, label);
    function last(line) { return line.points[line.points.length - 1].us; }
    function at(points, us) {  // of the interval that contains us
      var i = 0;
      while (i < points.length - 1 && points[i].us < us) ++i;
      return points[i].us >= us - 1e-9 ? points[i].value : null;
    }
    var end = d3.max(panels[0].lines, last);
    var u = Page.unit("us", end / 2);
    var x = scale(false, 0, end / u.by, [left, right]);
    var y0 = top;
    panels.forEach(function (panel, i) {
      var bottom = y0 + panel.tall, log = panel.kind === "bytes", foot = i === panels.length - 1;
      var y = log ? scale(true, lowest, Math.max(panel.largest * 1.2, lowest * 10), [bottom, y0])
                  : scale(false, 0, panel.largest * 1.05, [bottom, y0]);
      axes(svg, x, y, {
        xFormat: foot ? function (v) { return Page.digits(v, 4); } : null,
        xTitle: foot ? "virtual time (" + u.name + ")" : "",
        yTicks: log ? logTicks(lowest, panel.largest * 1.2, 7) : y.ticks(panel.tall > 100 ? 5 : 3),
        yFormat: function (v) { return log ? Page.quantity(v, "bytes", 2) : Page.digits(v, 3); },
        title: panel.title + (log ? " (log; what is below 1 KB lies on the axis)"
                                  : panel.kind ? " (" + panel.kind + ")" : ""),
      });
      function draw(extra, line) {
        function up(v) { return y(log ? Math.max(lowest, v) : v).toFixed(1); }
        var d = "M" + left + "," + up(line.points[0].value);
        line.points.forEach(function (p) { d += "V" + up(p.value) + "H" + x(p.us / u.by).toFixed(1); });
        svg.append("path").attr("class", "line fine " + extra + "arm-" + line.index).attr("d", d);
      }
      (panel.thin || []).forEach(draw.bind(null, "thin "));
      panel.lines.forEach(draw.bind(null, ""));
      y0 = bottom + gap;
    });
    legend(svg, left, 14, panels[0].lines.map(function (l) {
      return { name: "arm-" + l.index, text: l.name };
    }));
    var longest = panels[0].lines.reduce(function (a, l) { return last(l) > last(a) ? l : a; });
    var steps = longest.points.map(function (p) { return p.us / u.by; });
    reader(svg, x, top, y0 - gap, steps, function (t) {
      return Page.digits(t, 4) + " " + u.name + ": " + panels.slice(0, 2).map(function (p) {
        return p.title.split(",")[0].toLowerCase() + " " + p.lines.map(function (l) {
          var v = at(l.points, t * u.by);
          return l.name + " " + (v === null ? "over" : Page.amount(v, p.kind));
        }).join(", ");
      }).join("; ");
    });
  }

  return { canvas: canvas, text: text, scale: scale, axes: axes, legend: legend, course: course,
           logTicks: logTicks, letter: letter };
})();
