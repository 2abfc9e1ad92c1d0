// How values are shown: inspect is mongosh's way, tojson that of the shell before it.
'use strict';

function isPlain(v) {
  return v !== null && typeof v === 'object' && !v._bsontype && !(v instanceof Date) && !(v instanceof RegExp) && !(v instanceof Error);
}

// scalar shows what is not made of other values.
function scalar(v, legacy) {
  switch (typeof v) {
    case 'undefined': return 'undefined';
    case 'function': return legacy ? v.toString() : '[Function' + (v.name ? ': ' + v.name : ' (anonymous)') + ']';
    case 'string': return legacy ? JSON.stringify(v) : quote(v);
    case 'bigint': return legacy ? 'NumberLong("' + v + '")' : 'Long("' + v + '")';
    case 'number': case 'boolean': return Object.is(v, -0) ? '-0' : String(v);
  }
  if (v === null) { return 'null'; }
  if (v instanceof Date) {
    return isNaN(v.getTime()) ? 'ISODate("0NaN-NaN-NaNTNaN:NaN:NaNZ")' : 'ISODate("' + (legacy ? v.toISOString().replace('.000Z', 'Z') : v.toISOString()) + '")';
  }
  if (v instanceof RegExp) { return v.toString(); }
  if (v instanceof Error) { return v.stack ? String(v) : String(v); }
  switch (v._bsontype) {
    case 'ObjectId': return 'ObjectId("' + v.hex + '")';
    case 'Long': return legacy ? (Number.isSafeInteger(Number(v.value)) && Math.abs(Number(v.value)) < 2147483648 ? 'NumberLong(' + v.value + ')' : 'NumberLong("' + v.value + '")') : 'Long("' + v.value + '")';
    case 'Int32': return legacy ? 'NumberInt(' + v.value + ')' : String(v.value);
    case 'Double': return String(v.value);
    case 'Decimal128': return legacy ? 'NumberDecimal("' + v.value + '")' : 'Decimal128("' + v.value + '")';
    case 'Timestamp': return legacy ? 'Timestamp(' + v.t + ', ' + v.i + ')' : 'Timestamp({ t: ' + v.t + ', i: ' + v.i + ' })';
    case 'Binary':
      if (v.subtype === 4) { return 'UUID("' + v + '")'; }
      return legacy ? 'BinData(' + v.subtype + ',"' + v.base64 + '")' : 'Binary.createFromBase64("' + v.base64 + '", ' + v.subtype + ')';
    case 'MinKey': return legacy ? '{ "$minKey" : 1 }' : 'MinKey()';
    case 'MaxKey': return legacy ? '{ "$maxKey" : 1 }' : 'MaxKey()';
  }
  return String(v);
}

function quote(s) {
  const esc = s.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\t/g, '\\t').replace(/\r/g, '\\r');
  if (!s.includes("'")) { return "'" + esc + "'"; }
  if (!s.includes('"')) { return '"' + esc + '"'; }
  return "'" + esc.replace(/'/g, "\\'") + "'";
}

function inspect(v) {
  const lineLength = 80, merged = 3, maxDepth = 6, maxItems = 100;
  function show(v, depth, indent) {
    if (!isPlain(v)) { return { text: scalar(v, false), levels: 0 }; }
    if (typeof v[_inspect] === 'function') { return { text: v[_inspect](), levels: 0 }; }
    const array = Array.isArray(v);
    const keys = array ? [] : Object.keys(v);
    const n = array ? v.length : keys.length;
    if (n === 0) { return { text: array ? '[]' : '{}', levels: 0 }; }
    if (depth > maxDepth) { return { text: array ? '[Array]' : '[Object]', levels: 0 }; }
    const parts = [];
    let levels = 0;
    for (let i = 0; i < Math.min(n, array ? maxItems : n); i++) {
      const inner = show(array ? v[i] : v[keys[i]], depth + 1, indent + 2);
      levels = Math.max(levels, inner.levels + 1);
      const key = array ? '' : (/^[A-Za-z_][A-Za-z0-9_]*$/.test(keys[i]) ? keys[i] : quote(keys[i])) + ': ';
      parts.push(key + inner.text);
    }
    if (array && n > maxItems) { parts.push('... ' + (n - maxItems) + ' more item' + (n - maxItems > 1 ? 's' : '')); }
    const [open, close] = array ? ['[', ']'] : ['{', '}'];
    const length = parts.reduce((sum, p) => sum + p.length, parts.length + parts.length + indent + 1 + 10);
    if (levels <= merged && length <= lineLength && !parts.some((p) => p.includes('\n'))) {
      return { text: open + ' ' + parts.join(', ') + ' ' + close, levels };
    }
    const pad = '\n' + ' '.repeat(indent + 2);
    return { text: open + pad + parts.join(',' + pad) + '\n' + ' '.repeat(indent) + close, levels };
  }
  return show(v, 0, 0).text;
}

function tojson(v, indent, nolint) {
  if (indent === undefined || indent === null) { indent = ''; }
  if (!isPlain(v)) { return scalar(v, true); }
  if (typeof v.tojson === 'function') { return v.tojson(indent, nolint); }
  const pad = nolint ? '' : indent + '\t', eol = nolint ? ' ' : '\n';
  let s;
  if (Array.isArray(v)) {
    if (v.length === 0) { return '[ ]'; }
    s = '[' + eol + v.map((x) => pad + tojson(x, pad, nolint)).join(',' + eol) + eol + (nolint ? '' : indent) + ']';
  } else {
    const keys = Object.keys(v).filter((k) => typeof v[k] !== 'function');
    if (keys.length === 0) { return '{ ' + (nolint ? '' : '') + '}'; }
    s = '{' + eol + keys.map((k) => pad + JSON.stringify(k) + ' : ' + tojson(v[k], pad, nolint)).join(',' + eol) + eol + (nolint ? '' : indent) + '}';
  }
  if (!nolint && indent === '' && s.length < 80) { s = s.replace(/[\t\r\n]+/gm, ' '); }
  return s;
}

const _inspect = Symbol('inspect');

// shown is the text of a result; "" is not printed.
function shown(v) {
  if (v === undefined) { return ''; }
  if (v !== null && typeof v === 'object' && typeof v[_show] === 'function') { return v[_show](); }
  if (typeof v === 'string') { return v; }
  return _host.legacy ? tojson(v) : inspect(v);
}

const _show = Symbol('show');

globalThis.tojson = tojson;
globalThis.tojsononeline = (v) => tojson(v, '', true);
globalThis.print = (...args) => { _host.print(args.map((a) => typeof a === 'string' ? a : shown(a)).join(' ')); };
globalThis.printjson = (v) => { _host.print(_host.legacy ? tojson(v) : (typeof v === 'string' ? quote(v) : shown(v))); };
globalThis.console = { log: print, info: print, debug: print, error: print, warn: print };
globalThis.EJSON = { stringify: (v, _, space) => JSON.stringify(extended(v), null, space), parse: JSON.parse };

function extended(v) {
  if (Array.isArray(v)) { return v.map(extended); }
  if (v instanceof Date) { return { $date: v.toISOString() }; }
  if (isPlain(v)) { return Object.fromEntries(Object.keys(v).map((k) => [k, extended(v[k])])); }
  switch (v && v._bsontype) {
    case 'ObjectId': return { $oid: v.hex };
    case 'Long': case 'Int32': case 'Double': return Number(v.value);
    case 'Decimal128': return { $numberDecimal: v.value };
    case 'Timestamp': return { $timestamp: { t: v.t, i: v.i } };
    case 'Binary': return v.subtype === 4 ? { $uuid: String(v) } : { $binary: { base64: v.base64, subType: v.subtype.toString(16).padStart(2, '0') } };
  }
  return v;
}
