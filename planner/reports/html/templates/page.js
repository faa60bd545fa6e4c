"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const specs = read("specs");
  const themes = read("themes");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  let views = [];
  let turn = Promise.resolve();

  // Charts too wide for a phone keep their text readable: axis labels are narrower there.
  const fitted = (config, width) =>
    width < 420 ? { ...config, axis: { ...config.axis, labelLimit: 105 }, legend: { ...config.legend, columns: 2 } } : config;

  const draw = async () => {
    const theme = dark.matches && !paper.matches ? "dark" : "light";
    views.forEach((view) => view.finalize());
    views = [];
    for (const [name, spec] of Object.entries(specs)) {
      const place = document.getElementById("chart-" + name);
      const made = await vegaEmbed(place, spec, {
        config: fitted(themes[theme], place.clientWidth), actions: false, renderer: "svg", ast: true,
        tooltip: { theme },
      });
      views.push(made.view);
      place.dataset.drawn = theme;
    }
    document.documentElement.dataset.drawn = theme;
  };
  const again = () => { turn = turn.then(draw); };
  dark.addEventListener("change", again);
  paper.addEventListener("change", again);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  again();
})();
