
"use strict";
const $ = id => document.getElementById(id);
// make fills an element. Whatever it is given becomes attributes and text, never markup.
function make(node, attributes, children) {
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.flat(9).filter(c => c != null).map(c => c instanceof Node ? c : String(c)));
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const show = (id, ...children) => $(id).replaceChildren(...children.flat(9).filter(c => c != null));
const fail = (id, err) => show(id, el("p", {class: "bad", role: "alert"}, err.message));
// ask sends a request and returns the text of the answer; a form is sent by POST.
async function ask(path, form) {
  const answer = await fetch(path, form ? {method: "POST", body: new URLSearchParams(form)} : {});
  const text = await answer.text();
  if (answer.ok) return text;
  let why = text.trim();
  try { const v = JSON.parse(text); why = v.error || v.errors[0].msg || why; } catch { }
  throw new Error(`${answer.status} ${why}`);
}
const askJSON = async (path, form) => JSON.parse(await ask(path, form));
// fields are the values of a form; submitted calls f with them, and nothing is sent by the browser itself.
const fields = form => Object.fromEntries(new FormData(form));
const submitted = (id, f) => $(id).addEventListener("submit", e => { e.preventDefault(); f(fields(e.target), e.target); });
const row = (...cells) => el("tr", {}, cells.map(c => c instanceof Element && /^T[DH]$/.test(c.tagName) ? c : el("td", {}, c)));
// A heading with > in front is one of numbers.
const table = (head, rows) => el("table", {}, el("thead", {}, el("tr", {}, head.map(h => el("th", {scope: "col", class: h[0] === ">" && "number"}, h.replace(/^>/, ""))))), el("tbody", {}, rows));
const number = text => el("td", {class: "number"}, text);
const colours = ["#2a78c2", "#d1602b", "#2e9e57", "#9557c0", "#b98a00", "#c2417f", "#3a9ba8", "#7c7c7c"];
const colour = i => colours[i % colours.length];
