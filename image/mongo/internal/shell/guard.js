// What the engine reads by calling itself for each level is checked before it does: a text that nests
// too deep would take the stack of more than this shell.
'use strict';

(function () {
  const tooDeep = () => new RangeError('Maximum call stack size exceeded');
  const check = (text) => { if (!_host.shallow(String(text))) { throw tooDeep(); } return text; };
  const hide = (o, name, value) => Object.defineProperty(o, name, { value, writable: true, enumerable: false, configurable: true });

  const evaluate = globalThis.eval;
  hide(globalThis, 'eval', function (code) { return typeof code === 'string' ? evaluate(check(code)) : code; });

  for (const f of [function () {}, function* () {}, async function () {}, async () => {}]) {
    const proto = Object.getPrototypeOf(f), make = proto.constructor;
    const guarded = function (...args) { args.forEach(check); return make(...args); };
    guarded.prototype = proto;
    hide(proto, 'constructor', guarded);
    if (make === Function) { hide(globalThis, 'Function', guarded); }
  }

  const Pattern = RegExp;
  const guarded = function RegExp(pattern, flags) {
    if (!(pattern instanceof Pattern)) { check(pattern); }
    return new Pattern(pattern, flags);
  };
  guarded.prototype = Pattern.prototype;
  Object.defineProperty(guarded, Symbol.species, { get() { return this; }, configurable: true });
  hide(Pattern.prototype, 'constructor', guarded);
  delete Pattern.prototype.compile;
  hide(globalThis, 'RegExp', guarded);
  for (const name of ['match', 'matchAll', 'search']) {
    const native = String.prototype[name];
    hide(String.prototype, name, function (pattern) {
      return native.call(this, typeof pattern === 'string' ? new guarded(pattern, name === 'matchAll' ? 'g' : '') : pattern);
    });
  }

  const parse = JSON.parse;
  hide(JSON, 'parse', function (text, reviver) { return parse(check(text), reviver); });

  // V8's strings end at 2^29-24 characters; ours before.
  const longest = 1 << 24;
  for (const name of ['repeat', 'padStart', 'padEnd']) {
    const native = String.prototype[name];
    hide(String.prototype, name, function (n, ...rest) {
      if ((name === 'repeat' ? String(this).length * n : n) > longest) { throw new RangeError('Invalid string length'); }
      return native.call(this, n, ...rest);
    });
  }
})();
