// The part of the page of `heddle serve` for language models: a text that goes on, and a conversation, as they come,
// with what else was likely for each token.
//
//   heddle.serveText({ask, read, area, choice}) -> (model) => elements
"use strict";
heddle.serveText = ({ask, read, area, choice}) => {
  const el = heddle.el;
  const kTop = 5;  // likeliest tokens that are listed

  // The events of a stream, as JSON. Errors: the server's words.
  async function* events(response) {
    if (!response.ok) await read(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
      const all = (rest + part.value).split("\n\n");
      rest = all.pop();
      for (const event of all.filter((e) => e.startsWith("data: {"))) {
        const json = JSON.parse(event.slice(6));
        if (json.error) throw new Error(json.error.message);
        yield json;
      }
    }
  }

  // Tokens of a part with what else was likely: [{text, p, top: [[text, p]]}], whichever interface it came by.
  const tokensOf = (logprobs) => {
    if (!logprobs) return [];
    if (logprobs.content) {
      return logprobs.content.map((one) => ({text: one.token, p: Math.exp(one.logprob),
        top: one.top_logprobs.map((other) => [other.token, Math.exp(other.logprob)])}));
    }
    return logprobs.tokens.map((text, i) => ({text, p: Math.exp(logprobs.token_logprobs[i]),
      top: Object.entries(logprobs.top_logprobs[i]).map(([other, p]) => [other, Math.exp(p)]).sort((a, b) => b[1] - a[1])}));
  };
  const tip = (token) => [`${JSON.stringify(token.text)} ${heddle.percent(token.p)}`,
    ...token.top.map(([text, p]) => `${heddle.percent(p)} ${JSON.stringify(text)}`)].join("\n");
  // A part of a text, a span a token; where its text is not its tokens' (a character of several) one for all.
  const spans = (text, tokens) => {
    const fits = tokens.map((token) => token.text).join("") === text;
    const parts = !tokens.length ? [[text, null]] : fits ? tokens.map((token) => [token.text, token]) : [[text, tokens[tokens.length - 1]]];
    return parts.map(([part, token]) => {
      if (!token) return part;
      const span = el("span", {class: "token", style: `--share: ${(1 - token.p).toFixed(3)}`, tabindex: "0"}, part);
      for (const event of ["pointerenter", "focus"]) span.addEventListener(event, () => heddle.tip(
        {x: span.getBoundingClientRect().left, y: span.getBoundingClientRect().bottom}, tip(token)));
      for (const event of ["pointerleave", "blur"]) span.addEventListener(event, () => heddle.untip());
      return span;
    });
  };

  // A button that starts `work(signal)` and, while it goes on, stops it. status: what went wrong, or how fast it went
  const starter = (name, id, status, work) => {
    let controller = null;
    const button = el("button", {type: "button", id}, name);
    const run = async () => {
      if (controller) { controller.abort(); return; }
      controller = new AbortController();
      button.textContent = "Stop";
      status.textContent = "";
      const began = performance.now();
      let tokens = 0;
      try {
        await work(controller.signal, (n) => {
          tokens += n;
          status.textContent = `${(1000 * tokens / (performance.now() - began)).toFixed(1)} tokens/s`;
        });
      } catch (error) {
        if (error.name !== "AbortError") status.textContent = error.message;
      }
      controller = null;
      button.textContent = name;
    };
    button.addEventListener("click", run);
    return {button, run, isOn: () => controller !== null};
  };
  const settings = () => {
    const [lengthLabel, length] = choice("tokens", [16, 64, 256], 64);
    const [heatLabel, heat] = choice("temperature", [0, 0.5, 0.8, 1, 1.2], 0.8);
    return {labels: [lengthLabel, heatLabel],
      values: () => ({stream: true, max_tokens: Number(length.value), temperature: Number(heat.value)})};
  };

  const completion = (model) => {
    const prompt = area("prompt", "Write how the text begins");
    const result = el("p", {class: "panel text", id: "completion", "aria-live": "polite"});
    const status = el("span", {class: "faint small", role: "status"});
    const {labels, values} = settings();
    const {button} = starter("Generate", "generate", status, async (signal, count) => {
      result.replaceChildren(el("span", {class: "faint"}, prompt.value));
      const response = await ask("/v1/completions",
        {model: model.id, prompt: prompt.value, ...values(), logprobs: kTop}, signal);
      for await (const json of events(response)) {
        for (const one of json.choices) {
          const tokens = tokensOf(one.logprobs);
          result.append(...spans(one.text, tokens));
          count(tokens.length);
        }
      }
    });
    return [prompt, el("div", {class: "row"}, button, labels, status), result];
  };

  // Enter sends; what was said stays until it is begun anew.
  const conversation = (model) => {
    let messages = [], begun = 0;  // begun: how often anew
    const turns = el("div", {id: "turns", role: "log", "aria-label": "conversation"});
    const system = el("input", {type: "text", id: "system", "aria-label": "system", style: "flex: 1", placeholder: "What the model should be like (system)"});
    const said = area("message", "Say something; Enter sends, Shift and Enter make a line");
    said.rows = 2;
    const status = el("span", {class: "faint small", role: "status"});
    const {labels, values} = settings();
    const turn = (role, ...content) => {
      const text = el("p", {class: "text"}, content);
      turns.append(el("section", {class: role === "user" ? "turn" : "turn panel", style: "margin: .5rem 0", "data-role": role},
        el("div", {class: "faint small"}, role), text));
      return text;
    };
    const send = starter("Send", "send", status, async (signal, count) => {
      const content = said.value.trim();
      if (!content) return;
      const before = messages, mine = begun;
      messages = [...messages, {role: "user", content}];
      turn("user", content);
      said.value = "";
      let text = null, answer = "";
      try {
        const first = system.value.trim() ? [{role: "system", content: system.value.trim()}] : [];
        const response = await ask("/v1/chat/completions", {model: model.id, messages: [...first, ...messages], ...values(),
          logprobs: true, top_logprobs: kTop}, signal);
        for await (const json of events(response)) {
          for (const one of json.choices) {
            text = text || turn("assistant");
            const tokens = tokensOf(one.logprobs);
            text.append(...spans(one.delta.content || "", tokens));
            answer += one.delta.content || "";
            count(tokens.length);
          }
        }
      } finally {
        // What was stopped counts as said; what was refused can be sent again. Nothing goes over into another conversation.
        if (mine === begun && text) {
          messages = [...messages, {role: "assistant", content: answer}];
        } else if (mine === begun) {
          messages = before;
          turns.lastElementChild.remove();
          said.value = content;
        }
      }
    });
    said.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!send.isOn()) send.run();
    });
    const anew = el("button", {type: "button", id: "anew"}, "New conversation");
    anew.addEventListener("click", () => {
      if (send.isOn()) send.run();
      messages = [];
      ++begun;
      turns.replaceChildren();
      status.textContent = "";
      said.focus();
    });
    return [el("div", {class: "row"}, system), turns, el("div", {class: "row"}, said), el("div", {class: "row"}, send.button, anew, labels, status)];
  };

  return (model) => {
    if (!model.chat) return completion(model);
    const ways = [["chat", conversation], ["completion", completion]];
    const body = el("div");
    const open = (i) => body.replaceChildren(...ways[i][1](model));
    open(0);
    return [heddle.picker({label: "as", chosen: 0, onChange: open, items: ways.map(([name]) => ({name}))}).element, body];
  };
};
