(() => {
  const { names, rows, candidates } = JSON.parse(document.getElementById("data").textContent);
  const facets = Object.keys(names);
  const total = rows.id.length;
  const shownAtOnce = 100;
  const byId = (id) => document.getElementById(id);
  const [form, search, list, more, detail] = ["filters", "search", "list", "more", "detail"].map(byId);
  const thousands = (n) => n.toLocaleString("en");
  let found = [];
  let shown = 0;
  let current = -1;

  // Texts of rows are only ever set as text, never as markup.
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const name = (facet, row) => names[facet][rows[facet][row]];
  const address = (row) => `#${encodeURIComponent(`${name("config", row)}/${rows.id[row]}`)}`;
  const label = (text) => (text === "" ? "none stated" : text);
  const plain = (turn) => (typeof turn === "string" ? turn : turn[0] + "\n" + turn[2]);
  const haystacks = [];
  const haystack = (row) =>
    (haystacks[row] ??= [rows.id[row], rows.src_id[row], rows.sub_category[row], ...rows.turns[row].map(plain)]
      .join("\n")
      .toLowerCase());

  for (const facet of facets) {
    const counts = names[facet].map(() => 0);
    for (const value of rows[facet]) counts[value] += 1;
    const select = form.elements[facet];
    select.append(element("option", "all", { value: "" }));
    const order = names[facet].map((text, i) => i);
    if (facet !== "config") order.sort((a, b) => names[facet][a].localeCompare(names[facet][b]));
    for (const i of order) {
      select.append(element("option", `${label(names[facet][i])} (${thousands(counts[i])})`, { value: i }));
    }
  }

  const item = (row) => {
    const button = element("button", undefined, { type: "button", "data-row": row });
    const what = [name("config", row), name("category", row), name("source", row)];
    button.append(element("span", what.join(" · "), { class: "what" }));
    const first = name("status", row) === "placeholder" ? "placeholder" : plain(rows.turns[row][0] ?? "").slice(0, 160);
    button.append(element("span", first, { class: "text", dir: "auto" }));
    const entry = element("li");
    entry.append(button);
    return entry;
  };
  const extend = () => {
    list.append(...found.slice(shown, shown + shownAtOnce).map(item));
    shown = Math.min(found.length, shown + shownAtOnce);
    more.hidden = shown === found.length;
    more.textContent = `Show more (${thousands(found.length - shown)} left)`;
    mark();
  };
  const mark = () => {
    for (const button of list.querySelectorAll("button")) {
      button.setAttribute("aria-current", String(Number(button.dataset.row) === current));
    }
  };
  const filter = () => {
    const wanted = facets.map((facet) => [facet, form.elements[facet].value]).filter(([, value]) => value !== "");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = [];
    for (let row = 0; row < total; row += 1) {
      if (!wanted.every(([facet, value]) => rows[facet][row] === Number(value))) continue;
      if (words.length && !words.every((word) => haystack(row).includes(word))) continue;
      found.push(row);
    }
    list.replaceChildren();
    shown = 0;
    byId("count").textContent = `${thousands(found.length)} of ${thousands(total)} rows`;
    extend();
  };

  const turn = (text) => {
    const block = element("div", undefined, { class: "turn", dir: "auto" });
    if (typeof text === "string") {
      block.textContent = text;
    } else {
      const [begin, cut, end] = text;
      block.append(begin, element("span", `[${thousands(cut)} code points left out]`, { class: "cut" }), end);
    }
    return block;
  };
  const facts = (row) => {
    const table = element("dl");
    const given = [
      ["sub_category", rows.sub_category[row]],
      ["source", name("source", row)],
      ["src_id", rows.src_id[row]],
      ["language", name("language", row)],
      ["difficulty", name("difficulty", row)],
      ["tokens", rows.num_tokens[row] === null ? "" : thousands(rows.num_tokens[row])],
      ["licence", rows.license[row]],
      ["template", rows.template_id[row]],
      ["text", name("status", row)],
    ];
    for (const [term, text] of given) if (text !== "") table.append(element("dt", term), element("dd", text));
    return table;
  };
  const neighbours = (row) => {
    const items = element("ol", undefined, { class: "near" });
    for (const [place, cosine] of rows.neighbours[row]) {
      const [recordId, category, questionId, excerpt] = candidates[place];
      const entry = element("li");
      entry.append(element("span", `${cosine.toFixed(3)} ${category}, `, { class: "soft" }));
      if (questionId) {
        const button = element("button", "chosen", { type: "button" });
        button.addEventListener("click", () => {
          show(rows.id.indexOf(questionId));
          detail.focus();
        });
        entry.append(button, " ");
      } else entry.append(element("span", "not chosen ", { class: "soft" }));
      entry.append(element("bdi", recordId, { class: "soft" }), ": ");
      entry.append(element("bdi", excerpt ?? "text not shown", excerpt === null ? { class: "soft" } : {}));
      items.append(entry);
    }
    return items;
  };
  const dropped = (row) => {
    const items = element("ul", undefined, { class: "dropped" });
    for (const [recordId, stage, reason, score] of rows.drops[row]) {
      const number = score === null ? "" : `, score ${score.toFixed(3)}`;
      items.append(element("li", `${recordId}: ${stage}, ${reason}${number}`));
    }
    const rest = rows.num_drops[row] - rows.drops[row].length;
    if (rest > 0) items.append(element("li", `and ${thousands(rest)} more; ledger.parquet has all`, { class: "soft" }));
    return items;
  };
  const picture = (row) => {
    const [category, x, y] = rows.point[row];
    const figure = [...document.querySelectorAll("main .pictures figure")].find((f) => f.dataset.category === category);
    const copy = figure.cloneNode(true);
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: x, cy: y, r: 34 })) circle.setAttribute(key, value);
    copy.querySelector("svg").append(circle);
    return copy;
  };
  const show = (row) => {
    current = row;
    mark();
    detail.replaceChildren(element("h3", `${name("config", row)} / ${name("category", row)}`), facts(row));
    const several = rows.turns[row].length > 1;
    rows.turns[row].forEach((text, i) => {
      if (several) detail.append(element("h4", `Turn ${i + 1}`));
      detail.append(turn(text));
    });
    if (rows.neighbours[row].length) detail.append(element("h4", "Nearest candidates, by cosine"), neighbours(row));
    if (rows.num_drops[row]) detail.append(element("h4", "Dropped for it"), dropped(row));
    if (rows.point[row]) detail.append(element("h4", "Where it lies among the candidates"), picture(row));
    detail.append(element("p", rows.id[row], { class: "soft" }));
    detail.scrollTop = 0;
    history.replaceState(null, "", address(row));
  };

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    show(Number(button.dataset.row));
    if (event.detail === 0 || detail.offsetTop > list.offsetTop + 40) detail.focus(); // the keyboard, or a narrow screen
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...list.querySelectorAll("button")];
    const place = buttons.indexOf(document.activeElement) + step;
    if (place >= buttons.length && !more.hidden) extend();
    const next = list.querySelectorAll("button")[place];
    if (!next) return;
    next.focus();
    show(Number(next.dataset.row));
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "ArrowDown" && document.activeElement === search) {
      event.preventDefault();
      list.querySelector("button")?.focus();
    } else if (event.key === "Escape" && detail.contains(document.activeElement)) {
      (list.querySelector('[aria-current="true"]') ?? search).focus();
    }
  });
  more.addEventListener("click", extend);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));

  filter();
  const start = location.hash ? rows.id.findIndex((_, row) => address(row) === location.hash) : -1;
  if (start >= 0) show(start);
  list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
})();
