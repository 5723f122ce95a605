"use strict";
// The browser of examples. Everything is put on the page as text, never as markup.
(() => {
  const PER_PAGE = 20;
  const LEVELS = [1, 2, 4, 6, 8];  // nats; as in the legend
  const CJK = /[\u2e80-\u9fff\uf900-\ufaff\ufe30-\uffef]|[\ud840-\ud8ff]/;
  const experiments = JSON.parse(document.getElementById("example-data").textContent);
  const find = (id) => document.getElementById(id);
  const list = find("example-list");
  if (!list) return;
  const choices = { experiment: find("pick-experiment"), strategy: find("pick-strategy"), ratio: find("pick-ratio"), method: find("pick-method") };
  const search = find("search");
  let page = 0;

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const offer = (select, options) => {
    const before = select.value;
    select.replaceChildren(...options.map(([value, text]) => {
      const option = make("option", "", text);
      option.value = value;
      return option;
    }));
    if (options.some(([value]) => value === before)) select.value = before;
  };
  const unique = (values) => [...new Set(values)];
  const current = () => experiments[Number(choices.experiment.value)];

  // Chinese is written without spaces.
  const gap = (left, right) => (left && right && CJK.test(left.slice(-1)) && CJK.test(right[0]) ? "" : " ");
  const words = (text) => (text ? text.split(" ") : []);
  const plain = (text) => text.toLowerCase().replace(/\s+/g, " ");
  const dense = (text) => plain(text).replace(/ /g, "");

  // A sentence; `show` makes the element of a word that stood in a blank.
  const sentence = (experiment, tokens, blanks, show) => {
    const line = make("span", "text");
    if (experiment.task === "poetry") line.lang = "zh";
    const numbers = new Map(blanks.map((place, number) => [place, number]));
    tokens.forEach((token, place) => {
      if (place) line.append(gap(tokens[place - 1], token));
      line.append(numbers.has(place) ? show(token, numbers.get(place)) : token);
    });
    return line;
  };
  const level = (nats) => LEVELS.filter((bound) => nats >= bound).length;
  const withFill = (tokens, blanks, fill) => {
    const whole = [...tokens];
    blanks.forEach((place, number) => { whole[place] = fill[number]; });
    return whole;
  };

  const row = (name, text, figure, className) => {
    const line = make("div", `row ${className || ""}`);
    line.append(make("span", "", name), make("span", "", figure), text);
    return line;
  };
  const card = (experiment, methods, [id, blanks, fills]) => {
    const box = make("article", "example");
    const [context, reference] = experiment.sentences[id].map(words);
    if (context.length) box.append(row("context", sentence(experiment, context, [], null), ""));
    box.append(row("template", sentence(experiment, reference, blanks, () => {
      const blank = make("span", "blank", "\u00a0");
      blank.setAttribute("aria-label", "blank");
      return blank;
    }), ""));
    box.append(row("reference", sentence(experiment, reference, blanks, (word) => make("span", "fill", word)), "NLL", "rule"));
    methods.forEach(([method, number]) => {
      const fill = fills[number];
      if (!fill) return;
      const [text, tenths, hundredths] = fill;
      const filled = withFill(reference, blanks, words(text));
      const line = sentence(experiment, filled, blanks, (word, place) => {
        const mark = make("span", "fill", word);
        if (tenths.length) {
          const nats = tenths[place] / 10;
          mark.classList.add(`level-${level(nats)}`);
          mark.title = `${nats.toFixed(1)} nats`;
        }
        return mark;
      });
      box.append(row(method.label, line, hundredths === null ? "" : (hundredths / 100).toFixed(2), method.id));
    });
    return box;
  };

  const matches = (experiment, methods, [id, , fills], query) => {
    const [context, reference] = experiment.sentences[id];
    const texts = [context, reference, ...methods.map(([, number]) => (fills[number] ? fills[number][0] : ""))];
    // Chinese is stored as characters apart; whoever searches types them together.
    return CJK.test(query) ? texts.some((text) => dense(text).includes(dense(query))) : texts.some((text) => plain(text).includes(query));
  };

  const show = () => {
    const experiment = current();
    const methods = experiment.methods.map((method, number) => [method, number])
      .filter(([method]) => !choices.method.value || method.id === choices.method.value);
    const set = experiment.sets.find((one) => one.strategy === choices.strategy.value && one.ratio === choices.ratio.value);
    const query = plain(search.value).trim();
    const found = set ? set.rows.filter((one) => !query || matches(experiment, methods, one, query)) : [];
    const last = Math.max(0, Math.ceil(found.length / PER_PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const part = found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    list.replaceChildren(...part.map((one) => card(experiment, methods, one)));
    const total = set ? `the first ${set.rows.length} of ${set.n.toLocaleString("en")} sentences` : "no sentences of this test set";
    find("found").textContent = part.length
      ? `${page * PER_PAGE + 1}\u2013${page * PER_PAGE + part.length} of ${found.length} found among ${total}`
      : `nothing found among ${total}`;
    find("previous").disabled = page === 0;
    find("next").disabled = page === last;
  };
  const offerAll = () => {
    const { sets, methods } = current();
    offer(choices.strategy, unique(sets.map((one) => one.strategy)).map((name) => [name, name]));
    offer(choices.ratio, unique(sets.map((one) => one.ratio)).map((name) => [name, `${name} %`]));
    offer(choices.method, [["", "all"], ...methods.map((method) => [method.id, method.label])]);
  };
  const restart = () => { page = 0; show(); };
  const turn = (step) => { page += step; show(); find("examples").scrollIntoView(); };

  offer(choices.experiment, experiments.map((experiment, number) => [String(number), experiment.name]));
  offerAll();
  choices.experiment.addEventListener("change", () => { offerAll(); restart(); });
  [choices.strategy, choices.ratio, choices.method].forEach((select) => select.addEventListener("change", restart));
  search.addEventListener("input", restart);
  find("previous").addEventListener("click", () => turn(-1));
  find("next").addEventListener("click", () => turn(1));
  show();
})();
